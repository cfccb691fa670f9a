"""The command upgrade: runs, previews and shows a campaign, and sends commands to a running one."""
