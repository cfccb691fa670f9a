"""The files into which a campaign is written, if somebody wants them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from equipoise.cli.write import check_writable, say_written, write_file
from equipoise.fuzz.reports import Account, csv_of, junit_of, page_of


@dataclass(frozen=True, slots=True)
class Files:
    """Where a page, a table and a document for build servers go; what is not wanted is nothing."""

    page: Path | None = None
    csv: Path | None = None
    junit: Path | None = None

    def check(self) -> None:
        """Refuse what cannot be written, before a campaign rather than after it."""
        for path in (self.page, self.csv, self.junit):
            if path is not None:
                check_writable(path)

    def write(self, account: Account) -> None:
        """Write whatever is wanted."""
        if self.csv is not None:
            write_file(self.csv, csv_of([account]))
        if self.junit is not None:
            write_file(self.junit, junit_of([account]))
        if self.page is not None:
            write_file(self.page, page_of(account).encode())
            say_written(self.page)
