# SPDX-License-Identifier: MIT
"""Removes what native Windows lacks, from every Python process with this on its path.

Modules of the standard library choose their code by `sys.platform` when they are imported, and
their Windows code cannot run here. So they are imported first, and click with them, then the
platform is renamed: only Byrote and its other dependencies see Windows.
"""

# ruff: noqa: F401 -- imported before the platform is renamed.
import asyncio
import concurrent.futures
import ctypes.util
import getpass
import importlib.metadata
import logging.handlers
import multiprocessing
import os
import platform
import select
import selectors
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import sysconfig
import tempfile
import urllib.request
import uuid
import webbrowser

import click

MODULES = ("fcntl", "grp", "pwd", "resource", "syslog", "termios", "tty", "pty")
GONE = {
    os: (
        *("fork", "forkpty", "getuid", "geteuid", "getgid", "getegid", "getgroups", "getpgid"),
        *("setsid", "setpgid", "killpg", "getresuid", "setresuid", "setuid", "setgid", "chown"),
        *("fchown", "fchmod", "mkfifo", "eventfd", "memfd_create", "pidfd_open", "sysconf"),
        *("sched_getaffinity", "posix_fallocate", "pipe2", "uname", "getloadavg", "statvfs"),
        *("O_NOFOLLOW", "O_DIRECTORY", "O_CLOEXEC", "O_NONBLOCK", "WNOHANG", "wait3", "wait4"),
        *("waitid", "WIFSIGNALED", "WTERMSIG"),
    ),
    select: ("poll", "epoll", "POLLIN", "POLLOUT"),
    signal: (
        *("SIGKILL", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGQUIT", "SIGCHLD", "SIGALRM", "SIGPIPE"),
        *("SIGSTOP", "SIGCONT", "SIGTSTP", "SIGWINCH", "setitimer", "alarm", "sigwait"),
        *("pthread_sigmask", "pthread_kill", "sigtimedwait", "sigpending", "pidfd_send_signal"),
    ),
    selectors: ("PollSelector", "EpollSelector"),
    socket: ("AF_UNIX",),
}

# Read and kept before the platform is renamed.
sysconfig.get_config_vars()
platform.uname()

for _module, _names in GONE.items():
    for _name in _names:
        if hasattr(_module, _name):
            delattr(_module, _name)
for _name in MODULES:
    sys.modules[_name] = None  # type: ignore[assignment]
sys.platform = "win32"
