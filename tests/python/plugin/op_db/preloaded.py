"""What each worker needs, in memory before it is born."""

from op_db.cases import operators

operators()
