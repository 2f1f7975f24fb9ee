"""What holds for all tests."""

import signal

# A shell that runs tests in the background may have them ignore these signals,
# and what they start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
