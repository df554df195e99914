"""What may go wrong with a download: D01 to D37 of the fault catalogue, each by its number, against the loopback hub.

faults.py [d07 ...]. A test is a few lines: a fault of the server, a run, what it must have come to. What must be so
after every run is in pull_case.py.
"""
import sys

import fault_kit  # noqa: F401, first: the path of what is imported
import faults_hub  # noqa: F401
import faults_body  # noqa: F401
import faults_machine  # noqa: F401
from pull_case import main

sys.exit(main(sys.argv[1:]))
