"""Operations that would spoil the run for all others, as the OpenAPI document names them.

Each gets an organization, an owner and rows of its own, used for nothing else. So does every DELETE.
Nothing is left out.
"""

SPOILERS = {
    "PATCH /api/v1/assistants/{assistant_id}/": "may close it to its guests, or take its model away",
    "PATCH /api/v1/tools/{tool_id}/": "may move it to where nothing answers",
    "PATCH /api/v1/organizations/{organization_id}/": "may limit how long chats are kept",
    "PATCH /api/v1/organizations/{organization_id}/members/{member_id}/": "may demote its owner",
    "PUT /api/v1/me/organization/": "the session acts in another organization from then on",
    "POST /api/v1/me/erase/": "the account is gone, and its session with it",
    "POST /api/v1/me/claim/": "a guest's chats can be claimed once",
    "POST /api/v1/invitations/accept/": "an invitation counts once",
    "POST /api/v1/invitations/decline/": "an invitation counts once",
    "POST /api/v1/assistants/{assistant_id}/dismiss-guests/": "ends every guest's token",
    "POST /api/v1/budgets/": "a budget of nothing refuses all questions",
    "PATCH /api/v1/budgets/{budget_id}/": "a budget of nothing refuses all questions",
    "POST /api/v1/turns/{turn_id}/approve/": "a waiting turn waits until one decision",
    "POST /api/v1/documents/{document_id}/retry/": "a document that failed is tried once",
    "POST /api/v1/documents/{document_id}/cancel/": "a document is on its way once",
}


def is_apart(operation: str) -> bool:
    return operation.startswith("DELETE ") or operation in SPOILERS
