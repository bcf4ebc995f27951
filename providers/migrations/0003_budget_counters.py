import amber.lib.ids
import django.core.validators
import django.db.models.deletion
from decimal import Decimal
from django.db import migrations, models


class Migration(migrations.Migration):
    """Budgets are held: a counter for each subject and period, and what turns have reserved."""

    dependencies = [
        ('accounts', '0003_key_lineage'),
        ('providers', '0002_embedding_model_size'),
    ]

    operations = [
        migrations.CreateModel(
            name='BudgetCounter',
            fields=[
                ('id', models.UUIDField(default=amber.lib.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('subject', models.CharField(blank=True, default='', max_length=200)),
                ('period_start', models.DateField()),
                ('used', models.DecimalField(decimal_places=8, default=0, max_digits=20)),
                ('reserved', models.DecimalField(decimal_places=8, default=0, max_digits=20)),
            ],
        ),
        migrations.CreateModel(
            name='BudgetReservation',
            fields=[
                ('id', models.UUIDField(default=amber.lib.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('holder_id', models.UUIDField()),
                ('amount', models.DecimalField(decimal_places=8, max_digits=20)),
            ],
        ),
        migrations.RemoveConstraint(
            model_name='budget',
            name='one_budget',
        ),
        migrations.AddField(
            model_name='budget',
            name='assistant_id',
            field=models.UUIDField(blank=True, null=True),
        ),
        migrations.AlterField(
            model_name='budget',
            name='limit',
            field=models.DecimalField(decimal_places=8, max_digits=20, validators=[django.core.validators.MinValueValidator(Decimal('0'))]),
        ),
        migrations.AddConstraint(
            model_name='budget',
            constraint=models.UniqueConstraint(fields=('organization', 'scope', 'subject', 'assistant_id', 'period', 'unit'), name='one_budget', nulls_distinct=False),
        ),
        migrations.AddConstraint(
            model_name='budget',
            constraint=models.CheckConstraint(condition=models.Q(('assistant_id__isnull', True), ('scope', 'guest'), _connector='OR'), name='budget_of_guests_by_assistant'),
        ),
        migrations.AddConstraint(
            model_name='budget',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('scope', 'organization'), _negated=True), ('subject', ''), _connector='OR'), name='budget_of_the_organization'),
        ),
        migrations.AddField(
            model_name='budgetcounter',
            name='budget',
            field=models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.CASCADE, related_name='counters', to='providers.budget'),
        ),
        migrations.AddField(
            model_name='budgetreservation',
            name='counter',
            field=models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.CASCADE, related_name='reservations', to='providers.budgetcounter'),
        ),
        migrations.AddIndex(
            model_name='budgetcounter',
            index=models.Index(fields=['period_start'], name='budget_counter_age'),
        ),
        migrations.AddConstraint(
            model_name='budgetcounter',
            constraint=models.UniqueConstraint(fields=('budget', 'subject', 'period_start'), name='one_budget_counter'),
        ),
        migrations.AddIndex(
            model_name='budgetreservation',
            index=models.Index(fields=['created_at'], name='reservation_age'),
        ),
        migrations.AddConstraint(
            model_name='budgetreservation',
            constraint=models.UniqueConstraint(fields=('holder_id', 'counter'), name='one_reservation'),
        ),
    ]
