"""Reports of upgrade campaigns, made of their events: course, account, page, comparison.

Enter by ``course_of`` and ``page_of``. Never runs a campaign, and knows nothing but its events.
"""
