"""Sign operators in to the admin, and count guesses before a password is looked at."""

from typing import Any

from unfold.forms import AuthenticationForm

from accounts.sign_in.rates import spend_admin_sign_in


class SignInForm(AuthenticationForm):  # type: ignore[misc]  # unfold has no types
    def clean(self) -> Any:
        """Check the sign-in. Raises RateLimited, which refuses the right password as well."""
        if self.request is not None:
            spend_admin_sign_in(self.request, self.cleaned_data.get("username", ""))
        return super().clean()
