"""The admin's sign-in form: guesses are counted before a password is looked at."""

from typing import Any

from unfold.forms import AuthenticationForm

from accounts.sign_in.rates import spend_admin_sign_in


class SignInForm(AuthenticationForm):  # type: ignore[misc]  # unfold has no types
    def clean(self) -> Any:
        """Raises RateLimited: the right password is refused as well, until then."""
        if self.request is not None:
            spend_admin_sign_in(self.request, self.cleaned_data.get("username", ""))
        return super().clean()
