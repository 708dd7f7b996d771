# SPDX-License-Identifier: MIT
"""What an App does with its database besides enqueueing: list, pause, cancel, retry, close."""
