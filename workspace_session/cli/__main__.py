"""`python -m workspace_session.cli`, for where the script is not on the path."""

from workspace_session.cli.main import main

main()
