// Copies what a button of operators' pages names. The page's policy allows no handlers in its HTML.

const SHOWN_MS = 1500;

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  if (!navigator.clipboard) {
    // Only pages that came by https may write to the clipboard: mark the text instead.
    getSelection().selectAllChildren(button.previousElementSibling);
    return;
  }
  await navigator.clipboard.writeText(button.dataset.copy);
  const icon = button.querySelector(".material-symbols-outlined");
  icon.textContent = "check";
  setTimeout(() => {
    icon.textContent = "content_copy";
  }, SHOWN_MS);
});
