"""Reports of campaigns in files: a table, a page, and what build servers read.

Enter by ``Account``; ``csv_of``, ``junit_of`` and ``page_of`` write one. Never judges anything.
"""

from equipoise.fuzz.reports.account import Account
from equipoise.fuzz.reports.junit import junit_of
from equipoise.fuzz.reports.page import page_of
from equipoise.fuzz.reports.table import csv_of

__all__ = ["Account", "csv_of", "junit_of", "page_of"]
