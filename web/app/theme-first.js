/* Runs before anything is drawn, so that a page of the chosen theme never flashes in the other. */
try {
	const chosen = JSON.parse(localStorage.getItem("amber.theme") || "null");
	if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
	// There is no storage: the system's theme it is.
}
