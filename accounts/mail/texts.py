"""Say what each kind of mail says, in the language that is active.

A text is a subject, paragraphs, a list, one link and a note below, which `accounts.mail.messages` lays
out the same way for all. Names and titles in `details` are people's: nothing here takes them for markup.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from django.conf import settings
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.models import MailKind

Details = Mapping[str, Any]

NOTICES: Final = frozenset({MailKind.BUDGET, MailKind.FAILED_DOCUMENTS, MailKind.FAILED_REPOSITORY})
"""What a person may switch off: nobody needs it to sign in."""

SHOWN_NAME_CHARS: Final = 80
"""Names of organizations, libraries and people are their own to choose: a long one is an advertisement."""


@dataclass(frozen=True, slots=True)
class MailText:
    subject: str
    paragraphs: tuple[str, ...]
    items: tuple[str, ...] = ()
    button: str = ""
    address: str = ""
    note: str = ""


def text_of(kind: str, details: Details) -> MailText:
    """Return the words of a mail. Raises KeyError for a kind that a newer release wrote."""
    return _TEXTS[kind](details)


def platform_name() -> str:
    return str(settings.AMBER_NAME)


def page_address(path: str) -> str:
    """Return the address of a page; a path alone where the installation does not know its own."""
    return f"{settings.AMBER_PUBLIC_URL}/{path}"


# -- Signing in -----------------------------------------------------------------------------------


def _invitation(details: Details) -> MailText:
    organization, inviter = _short(details["organization"]), _short(details["inviter"])
    return MailText(
        subject=_("You are invited to “{organization}”").format(organization=organization),
        paragraphs=(
            _("{inviter} invites you to work in “{organization}” on {platform}.").format(
                inviter=inviter, organization=organization, platform=platform_name()
            ),
            _("The invitation is for this email address and ends on {day}.").format(
                day=details["until"]
            ),
        ),
        button=_("View the invitation"),
        address=page_address(f"invitation/{details['token']}"),
        note=_("If you do not know the sender, ignore this email. Nothing will happen."),
    )


def _address_proof(details: Details) -> MailText:
    return _of_an_account(
        details,
        _("Confirm your email address"),
        _("Someone, hopefully you, signed up at {platform} with this address."),
        _("Confirm it, then sign in."),
        button=_("Confirm the address"),
        note=_("If this was not you, ignore this email. The address will not be used."),
    )


def _password_reset(details: Details) -> MailText:
    return _of_an_account(
        details,
        _("Choose a new password"),
        _("Someone, hopefully you, asked for a new password for your account at {platform}."),
        button=_("Choose a new password"),
        note=_("If this was not you, ignore this email. Your password stays the same."),
    )


def _account_exists(details: Details) -> MailText:
    return _of_an_account(
        details,
        _("You have an account already"),
        _(
            "Someone, hopefully you, tried to sign up at {platform} with this address. It already has "
            "an account: sign in with your password, or choose a new one."
        ),
        button=_("Choose a new password"),
        note=_("If this was not you, ignore this email. Nothing was changed."),
    )


def _no_account(details: Details) -> MailText:
    return _of_an_account(
        details,
        _("There is no account with this address"),
        _(
            "Someone, hopefully you, asked for a new password at {platform}. There is no account with "
            "this address. Did you sign up with another one?"
        ),
        note=_("If this was not you, ignore this email."),
    )


def _of_an_account(
    details: Details, subject: str, *paragraphs: str, button: str = "", note: str
) -> MailText:
    said = tuple(each.format(platform=platform_name()) for each in paragraphs)
    address = details["address"] if button else ""
    return MailText(subject, said, button=button, address=address, note=note)


def _account_change(details: Details) -> MailText:
    paragraphs = [each.strip() for each in details["text"].split("\n\n")]
    return MailText(
        subject=details["subject"], paragraphs=tuple(each for each in paragraphs if each)
    )


# -- Notices --------------------------------------------------------------------------------------


def _budget(details: Details) -> MailText:
    """Tell of a budget; `share` is 80 or 100, `period`, `scope` and `unit` are the budget's."""
    budget = _BUDGETS[details["period"]]().format(whose=_WHOSE[details["scope"]]())
    organization = _short(details["organization"])
    share = details["share"]
    if share >= 100:
        subject = _("A budget of “{organization}” is used up").format(organization=organization)
        said = _("{budget} is too low for what was asked: questions are refused.")
    else:
        subject = _("{share}% of a budget of “{organization}” are used").format(
            share=share, organization=organization
        )
        said = _("{budget}: {share}% are used.")
    return MailText(
        subject=subject,
        paragraphs=(
            said.format(budget=budget, share=share),
            _("Used: {used} of {limit}. It resets at {resets_at} (UTC).").format(
                used=_amount(details, "used"),
                limit=_amount(details, "limit"),
                resets_at=details["resets_at"],
            ),
        ),
        button=_("View budgets"),
        address=page_address("settings/budgets"),
    )


def _amount(details: Details, name: str) -> str:
    """Return an amount of a budget with the language's separators.

    A mail without `unit` waited since a release that wrote the amount out itself.
    """
    amount = str(details[name])
    if "unit" not in details:
        return amount
    is_money = details["unit"] == "money"
    places = 2 if is_money else 0
    # What Django would cut off is rounded.
    number = number_format(f"{Decimal(amount):.{places}f}", places, force_grouping=True)
    return number if is_money else _("{number} tokens").format(number=number)


_BUDGETS: Final[Mapping[str, Callable[[], str]]] = {
    "day": lambda: _("The daily budget of {whose}"),
    "month": lambda: _("The monthly budget of {whose}"),
}
_WHOSE: Final[Mapping[str, Callable[[], str]]] = {
    "organization": lambda: _("the organization"),
    "user": lambda: _("a member"),
    "key": lambda: _("an API key"),
    "assistant": lambda: _("an assistant"),
}


def _failed_documents(details: Details) -> MailText:
    count, library = details["count"], _short(details["library"])
    return MailText(
        subject=ngettext(
            "{count} document of “{library}” could not be indexed",
            "{count} documents of “{library}” could not be indexed",
            count,
        ).format(count=count, library=library),
        paragraphs=(
            _(
                "You added what failed to the library “{library}”. Searches do not find it until it is "
                "tried again, or replaced."
            ).format(library=library),
        ),
        items=(*_failures(details["items"]), *_more(count - len(details["items"]))),
        button=_("View the library"),
        address=page_address(f"libraries/{details['library_id']}"),
    )


def _failures(items: Any) -> list[str]:
    return [f"{_short(each['name'])}: {each['error']}" for each in items]


def _more(count: int) -> list[str]:
    said = ngettext("and {count} more", "and {count} more", count).format(count=count)
    return [said] if count > 0 else []


def _failed_repository(details: Details) -> MailText:
    library = _short(details["library"])
    return MailText(
        subject=_("A Git repository could not be imported into “{library}”").format(
            library=library
        ),
        paragraphs=(
            _("{address} could not be imported:").format(address=details["git_url"]),
            details["error"],
        ),
        button=_("View the library"),
        address=page_address(f"libraries/{details['library_id']}"),
    )


def _short(name: str) -> str:
    return name if len(name) <= SHOWN_NAME_CHARS else f"{name[: SHOWN_NAME_CHARS - 1]}…"


_TEXTS: Final[Mapping[str, Callable[[Details], MailText]]] = {
    MailKind.INVITATION: _invitation,
    MailKind.ADDRESS_PROOF: _address_proof,
    MailKind.PASSWORD_RESET: _password_reset,
    MailKind.ACCOUNT_EXISTS: _account_exists,
    MailKind.NO_ACCOUNT: _no_account,
    MailKind.ACCOUNT_CHANGE: _account_change,
    MailKind.BUDGET: _budget,
    MailKind.FAILED_DOCUMENTS: _failed_documents,
    MailKind.FAILED_REPOSITORY: _failed_repository,
}
