"""List the forms of English words that no stemmer joins: went and go, children and child.

The usual irregular verbs and nouns of a school grammar. Those that every text has (be, have, do) are left
out, and those whose forms are common words with another meaning (lay, left, saw). A question asks for all
forms (`amber.lib.search.stems`); texts are stored as they are.
"""

from collections.abc import Sequence
from typing import Final

_GROUPS: Final = """
become became, begin began begun, bite bit bitten, blow blew blown, break broke broken, bring brought, build built,
burn burnt, buy bought, catch caught, choose chose chosen, come came, deal dealt, dig dug, draw drew drawn,
dream dreamt, drink drank drunk, drive drove driven, eat ate eaten, fall fell fallen, feed fed, feel felt,
fight fought, find found, fly flew flown, forget forgot forgotten, forgive forgave forgiven, freeze froze frozen,
get got gotten, give gave given, go went gone, grow grew grown, hang hung, hear heard, hide hid hidden, hold held, keep kept,
know knew known, lead led, lean leant, learn learnt, lend lent, lose lost, make made, mean meant, meet met, pay paid,
ride rode ridden, ring rang rung, rise rose risen, run ran, say said, sell sold, send sent, shake shook shaken, shine shone,
shoot shot, show shown, shrink shrank shrunk, sing sang sung, sink sank sunk, sit sat, sleep slept, slide slid,
speak spoke spoken, spend spent, spin spun, stand stood, steal stole stolen, stick stuck, sting stung, strike struck,
swear swore sworn, sweep swept, swim swam swum, swing swung, take took taken, teach taught, tear tore torn, tell told,
think thought, throw threw thrown, understand understood, wake woke woken, wear wore worn, weep wept, win won,
write wrote written,
child children, foot feet, goose geese, half halves, knife knives, leaf leaves, life lives, loaf loaves, man men,
mouse mice, person people, shelf shelves, thief thieves, tooth teeth, wife wives, wolf wolves, woman women
"""

_FORMS: Final[dict[str, Sequence[str]]] = {
    word: group for group in (each.split() for each in _GROUPS.split(",")) for word in group
}


def irregular_forms(word: str) -> Sequence[str]:
    """Return the forms of an English word (in lower case) that its stem does not find; none of a regular one."""
    return [form for form in _FORMS.get(word, ()) if form != word]
