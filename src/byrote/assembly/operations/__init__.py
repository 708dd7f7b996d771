# SPDX-License-Identifier: MIT
"""Operations of an App besides enqueueing: list, pause, cancel, retry, close."""
