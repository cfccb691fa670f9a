"""The report of batch jobs: the folder of a run, its page, and the comparison of runs."""

from equipoise.report.jobs.folder import (
    SavedJobs,
    is_jobs_folder,
    prepare_folder,
    read_jobs_folder,
    require_parquet,
    write_job_tables,
    write_jobs_folder,
)
from equipoise.report.jobs.page import compare_jobs_page, jobs_measures, jobs_page

__all__ = [
    "SavedJobs",
    "compare_jobs_page",
    "is_jobs_folder",
    "jobs_measures",
    "jobs_page",
    "prepare_folder",
    "read_jobs_folder",
    "require_parquet",
    "write_job_tables",
    "write_jobs_folder",
]
