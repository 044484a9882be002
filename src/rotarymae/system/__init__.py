"""The system around the work: files written whole, versions and hardware, what a person sees."""

from rotarymae.system.atomic_write import (
    check_writable,
    flush,
    remove_leftovers,
    replacing,
    replacing_folder,
    sha256,
    sha256_of,
    write_text,
)
from rotarymae.system.fields import as_json, field_docs, from_fields, plain_json, unmasked
from rotarymae.system.machine import free_memory, hardware, processor, versions
from rotarymae.system.progress import Reporter, duration, moment
