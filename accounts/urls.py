"""Route REST of accounts, below /api/v1/."""

from django.urls import path

from accounts.api import audit_views, group_views, views

urlpatterns = [
    path("me/", views.MeView.as_view(), name="me"),
    path("me/organization/", views.ActiveOrganizationView.as_view(), name="active-organization"),
    path("organizations/", views.OrganizationsView.as_view(), name="organizations"),
    path(
        "organizations/<uuid:organization_id>/",
        views.OrganizationView.as_view(),
        name="organization",
    ),
    path(
        "organizations/<uuid:organization_id>/members/",
        views.MembersView.as_view(),
        name="members",
    ),
    path(
        "organizations/<uuid:organization_id>/members/<uuid:member_id>/",
        views.MemberView.as_view(),
        name="member",
    ),
    path(
        "organizations/<uuid:organization_id>/invitations/",
        views.InvitationsView.as_view(),
        name="invitations",
    ),
    path(
        "organizations/<uuid:organization_id>/invitations/<uuid:invitation_id>/",
        views.InvitationView.as_view(),
        name="invitation",
    ),
    path("invitations/find/", views.FindInvitationView.as_view(), name="find-invitation"),
    path("invitations/accept/", views.AcceptInvitationView.as_view(), name="accept-invitation"),
    path("invitations/decline/", views.DeclineInvitationView.as_view(), name="decline-invitation"),
    path("groups/", group_views.GroupsView.as_view(), name="groups"),
    path("groups/<uuid:group_id>/", group_views.GroupView.as_view(), name="group"),
    path(
        "groups/<uuid:group_id>/members/",
        group_views.GroupMembersView.as_view(),
        name="group-members",
    ),
    path(
        "groups/<uuid:group_id>/members/<uuid:user_id>/",
        group_views.GroupMemberView.as_view(),
        name="group-member",
    ),
    path("api-keys/", views.ApiKeysView.as_view(), name="api-keys"),
    path("api-keys/<uuid:key_id>/", views.ApiKeyView.as_view(), name="api-key"),
    path("api-keys/<uuid:key_id>/rotate/", views.RotateApiKeyView.as_view(), name="rotate-api-key"),
    path("audit/", audit_views.AuditView.as_view(), name="audit"),
    path("audit/export/", audit_views.AuditExportView.as_view(), name="export-audit"),
]
