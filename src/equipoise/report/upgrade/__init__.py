"""Reports of upgrade campaigns, made from their events: history, penalties, page, comparison.

Enter by ``campaign_history`` and ``upgrade_page``. Never runs a campaign, and reads nothing but its
events.
"""
