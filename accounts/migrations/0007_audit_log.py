"""Make the audit log: two tables, and a trigger that lets nobody change what was written."""

import amber.lib.ids
import django.db.models.deletion
from django.db import migrations, models

REFERENCES = """
ALTER TABLE accounts_auditevent ADD CONSTRAINT audit_event_organization
    FOREIGN KEY (organization_id) REFERENCES accounts_organization (id) ON DELETE CASCADE;
ALTER TABLE accounts_auditchain ADD CONSTRAINT audit_chain_organization
    FOREIGN KEY (organization_id) REFERENCES accounts_organization (id) ON DELETE CASCADE;
"""

# Rows go with their organization alone: when its cascade comes here, it is gone. The schema is
# named, for a temporary table of the same name would be found first.
TRIGGERS = """
CREATE FUNCTION refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    is_left_over boolean := false;
BEGIN
    IF TG_OP = 'DELETE' THEN
        EXECUTE format(
            'SELECT NOT EXISTS (SELECT FROM %I.accounts_organization WHERE id = $1)',
            TG_TABLE_SCHEMA
        ) INTO is_left_over USING OLD.organization_id;
    END IF;
    IF is_left_over THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'The audit log can only be appended to.' USING ERRCODE = '42501';
END
$$;
CREATE TRIGGER audit_rows_stay BEFORE UPDATE OR DELETE ON accounts_auditevent
    FOR EACH ROW EXECUTE FUNCTION refuse_audit_change();
CREATE TRIGGER audit_table_stays BEFORE TRUNCATE ON accounts_auditevent
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change();
"""

NO_TRIGGERS = """
DROP TRIGGER audit_table_stays ON accounts_auditevent;
DROP TRIGGER audit_rows_stay ON accounts_auditevent;
DROP FUNCTION refuse_audit_change;
"""


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0006_trust_existing_addresses'),
    ]

    operations = [
        migrations.CreateModel(
            name='AuditChain',
            fields=[
                ('organization', models.OneToOneField(on_delete=django.db.models.deletion.DO_NOTHING, primary_key=True, related_name='+', serialize=False, db_constraint=False, to='accounts.organization')),
                ('number', models.PositiveBigIntegerField()),
                ('hash', models.CharField(blank=True, default='', max_length=64)),
            ],
        ),
        migrations.CreateModel(
            name='AuditEvent',
            fields=[
                ('id', models.UUIDField(default=amber.lib.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('number', models.PositiveBigIntegerField()),
                ('created_at', models.DateTimeField()),
                ('action', models.CharField(choices=[('sign_in.succeeded', 'a member signed in'), ('sign_in.failed', 'somebody tried to sign in as a member, and was refused'), ('key.made', 'an API key was made'), ('key.changed', 'an API key was given another name, scope, origin or end'), ('key.rotated', 'an API key got a successor'), ('key.revoked', 'an API key was revoked'), ('organization.changed', "the organization's own settings were changed"), ('member.invited', 'an email address was invited'), ('member.joined', 'a person became a member'), ('member.role_changed', 'a member got another role'), ('member.removed', 'a member was removed, or left'), ('assistant.shared', 'an assistant was shared with the organization'), ('assistant.unshared', 'a shared assistant became private or was deleted'), ('assistant.published', 'an assistant was opened to guests'), ('assistant.unpublished', 'a public assistant was closed or deleted'), ('library.shared', 'a library was shared with the organization'), ('library.unshared', 'a shared library became private or was deleted'), ('tool.shared', 'a tool was shared with the organization'), ('tool.unshared', 'a shared tool became private or was deleted'), ('budget.made', 'a budget was made'), ('budget.changed', 'a budget got another limit'), ('budget.removed', 'a budget was removed'), ('person.exported', 'a person exported their data'), ('person.erased', 'a person asked to have their data deleted'), ('audit.exported', 'this log was exported'), ('operator.read', 'an operator opened a row of the organization in the admin'), ('operator.added', 'an operator added a row in the admin'), ('operator.changed', 'an operator changed a row in the admin'), ('operator.deleted', 'an operator deleted a row in the admin')], max_length=40)),
                ('actor_kind', models.CharField(choices=[('user', 'a person, signed in'), ('key', 'an API key, which acts for its user'), ('operator', 'an operator of the installation'), ('nobody', 'nobody who proved who they are')], max_length=12)),
                ('actor_user_id', models.UUIDField(blank=True, null=True)),
                ('actor_key_id', models.UUIDField(blank=True, null=True)),
                ('target_kind', models.CharField(max_length=40)),
                ('target_id', models.UUIDField()),
                ('target_label', models.CharField(blank=True, default='', max_length=200)),
                ('address', models.CharField(blank=True, default='', max_length=45)),
                ('detail', models.JSONField(blank=True, default=dict)),
                ('previous_hash', models.CharField(blank=True, default='', max_length=64)),
                ('hash', models.CharField(max_length=64)),
                ('organization', models.ForeignKey(on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', db_constraint=False, to='accounts.organization')),
            ],
            options={
                'indexes': [models.Index(fields=['organization', '-created_at'], name='audit_org_time')],
                'constraints': [models.UniqueConstraint(fields=('organization', 'number'), name='one_audit_number')],
            },
        ),
        migrations.RunSQL(REFERENCES, migrations.RunSQL.noop),
        migrations.RunSQL(TRIGGERS, NO_TRIGGERS),
    ]
