/* Tells screen readers, once, what sighted people see change. Both places stand in the document from the start. */

/** @param {string} id @param {string} text */
function say(id, text) {
	const place = document.getElementById(id);
	if (!place) return;
	// The same words twice are said twice only if the place was empty in between.
	place.textContent = "";
	setTimeout(() => (place.textContent = text), 50);
}

/** When the reader has finished what it is saying. @param {string} text */
export const announce = (text) => say("said", text);

/** At once. @param {string} text */
export const warn = (text) => say("warned", text);
