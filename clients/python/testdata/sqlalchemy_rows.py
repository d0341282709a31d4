"""Makes rows with the model of the README, which is models.py, and prints their keys.

    sqlalchemy_rows.py DIRECTORY
"""

import sys

sys.path.insert(0, sys.argv[1])

from models import Base, Photo
from sqlalchemy import create_engine, insert, select
from sqlalchemy.orm import Session

engine = create_engine("sqlite://")
Base.metadata.create_all(engine)
with Session(engine) as session:
    for n in range(50):
        session.add(Photo(name="one"))
        session.flush()
    session.execute(insert(Photo).values(name="inserted"))
    session.execute(insert(Photo), [{"name": "many"} for _ in range(49)])
    session.commit()
    keys = list(session.scalars(select(Photo.id).order_by(Photo.id)))
assert len(keys) == 100, len(keys)
print("\n".join(map(str, keys)))
