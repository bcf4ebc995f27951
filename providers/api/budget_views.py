"""Serve budgets over REST, to the organization's owners and admins in person."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.principal import Principal
from accounts.registry import sees_assistant
from accounts.sign_in.authentication import HasPrincipal, InPerson, admin_of, principal_of
from accounts.tenancy.access import get_visible, get_writable
from amber.lib.errors import Missing
from amber.lib.rest.wire import validate_body
from providers.api.budget_serializers import (
    BUDGET_EXAMPLES,
    BudgetChangesSerializer,
    BudgetSerializer,
    NewBudgetSerializer,
    budgets_to_wire,
)
from providers.budgets import services
from providers.budgets.scopes import SCOPES
from providers.models import Budget


class BudgetsView(GenericAPIView[Budget]):
    permission_classes = [HasPrincipal, InPerson]
    serializer_class = BudgetSerializer

    @extend_schema(responses=BudgetSerializer(many=True))
    def get(self, request: Request) -> Response:
        """List the organization's budgets, newest first, with what is used of each."""
        page = self.paginate_queryset(Budget.objects.visible_to(admin_of(request)))
        return self.get_paginated_response(budgets_to_wire(page or []))

    @extend_schema(
        request=NewBudgetSerializer, responses={201: BudgetSerializer}, examples=BUDGET_EXAMPLES
    )
    def post(self, request: Request) -> Response:
        """Create a budget. What was already used in the current period counts."""
        principal = admin_of(request)
        given = validate_body(NewBudgetSerializer, request)
        _check_subject(principal, given)
        made = services.create_budget(principal.organization_id, by=principal.actor, **given)
        return Response(budgets_to_wire([made])[0], status=201)


class BudgetView(APIView):
    permission_classes = [HasPrincipal, InPerson]

    @extend_schema(responses=BudgetSerializer)
    def get(self, request: Request, budget_id: UUID) -> Response:
        """Get a budget with what is used of it."""
        budget = get_visible(Budget, principal_of(request), budget_id)
        return Response(budgets_to_wire([budget])[0])

    @extend_schema(request=BudgetChangesSerializer, responses=BudgetSerializer)
    def patch(self, request: Request, budget_id: UUID) -> Response:
        """Change the limit. What was used is kept."""
        principal = principal_of(request)
        budget = get_writable(Budget, principal, budget_id)
        given = validate_body(BudgetChangesSerializer, request)
        budget = services.change_limit(budget, limit=given["limit"], by=principal.actor)
        return Response(budgets_to_wire([budget])[0])

    @extend_schema(responses={204: None})
    def delete(self, request: Request, budget_id: UUID) -> Response:
        """Delete the budget. Its limit no longer applies."""
        principal = principal_of(request)
        services.delete_budget(get_writable(Budget, principal, budget_id), by=principal.actor)
        return Response(status=204)


def _check_subject(principal: Principal, given: dict[str, Any]) -> None:
    """Raise Missing unless the principal sees the subject and the assistant of the budget."""
    subject, assistant_id = given.get("subject", ""), given.get("assistant_id")
    if assistant_id is not None and not sees_assistant(principal, assistant_id):
        raise Missing
    is_visible = SCOPES[given["scope"]].is_visible
    if subject and is_visible is not None and not is_visible(principal, UUID(subject)):
        raise Missing
