"use strict";
// Signs in by allauth's JSON API, then goes on where the person wanted to go.

const BROWSER = "/_allauth/browser/v1";
const form = document.getElementById("sign-in");
const fault = document.getElementById("fault");
const csrfToken = () => document.cookie.match(/(?:^|; )csrftoken=([^;]+)/)?.[1] ?? "";

function tell(words) {
  fault.textContent = words;
  fault.hidden = false;
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  fault.hidden = true;
  const body = JSON.stringify({ email: form.email.value, password: form.password.value });
  const headers = { "Content-Type": "application/json", "X-CSRFToken": csrfToken() };
  let answer;
  try {
    answer = await fetch(`${BROWSER}/auth/login`, { method: "POST", headers, body });
  } catch {
    tell(form.dataset.unreachable);
    return;
  }
  if (answer.ok || answer.status === 409) {
    location.assign(form.dataset.next);
    return;
  }
  const said = await answer.json().catch(() => ({}));
  tell(said.errors?.[0]?.message ?? (answer.status === 401
    ? form.dataset.unproved
    : form.dataset.failed));
});

// A plain form, because the identity provider is another site.
function offer({ id, name }) {
  const made = document.createElement("form");
  made.method = "post";
  made.action = `${BROWSER}/auth/provider/redirect`;
  const fields = { provider: id, process: "login", callback_url: form.dataset.next, csrfmiddlewaretoken: csrfToken() };
  for (const [key, value] of Object.entries(fields)) {
    const field = document.createElement("input");
    Object.assign(field, { type: "hidden", name: key, value });
    made.append(field);
  }
  const button = document.createElement("button");
  button.className = "quiet";
  button.textContent = form.dataset.elsewhere.replace("{name}", () => name);
  made.append(button);
  document.getElementById("providers").append(made);
}

fetch(`${BROWSER}/config`)
  .then((answer) => answer.json())
  .then((config) => config.data?.socialaccount?.providers?.forEach(offer))
  .catch(() => {});  // without the list there is still the password
