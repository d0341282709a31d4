"""Makes rows with the model of the README, which is app.models, and prints their keys.

    django_rows.py DIRECTORY
"""

import io
import sys

directory = sys.argv[1]
sys.path.insert(0, directory)

import django
from django.conf import settings

settings.configure(
    INSTALLED_APPS=["app"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    USE_TZ=True,
)
django.setup()
from django.core.management import call_command

call_command("makemigrations", "app", stdout=io.StringIO())
call_command("migrate", stdout=io.StringIO())
from app.models import Photo

for n in range(50):
    Photo.objects.create(name="one")
Photo(name="saved").save()
Photo.objects.bulk_create([Photo(name="bulk") for _ in range(49)])
keys = list(Photo.objects.order_by("id").values_list("id", flat=True))
assert len(keys) == 100, len(keys)
assert [p.name for p in Photo.objects.order_by("id")] == ["one"] * 50 + ["saved"] + ["bulk"] * 49
print("\n".join(map(str, keys)))
