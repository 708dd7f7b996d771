# SPDX-License-Identifier: MIT
"""Names of the standard library that Linux has and macOS does not, by module.

Taken from the platform checks of typeshed's stubs; constants that go with a function, and families
of sockets that no program of ours could use, are left out. `sitecustomize.py` removes them, and
`tests/tidy/test_portable.py` finds their uses.
"""

LINUX_ONLY = {
    # First: importing socket imports selectors, which looks for epoll.
    "select": ("epoll", "EPOLLIN", "EPOLLOUT", "EPOLLET", "EPOLLONESHOT", "POLLRDHUP"),
    "os": (
        *("eventfd", "eventfd_read", "eventfd_write", "memfd_create", "pidfd_open", "pipe2"),
        *("EFD_CLOEXEC", "EFD_NONBLOCK", "MFD_CLOEXEC", "MFD_ALLOW_SEALING", "P_PIDFD"),
        *("O_DIRECT", "O_NOATIME", "O_PATH", "O_TMPFILE", "copy_file_range", "fdatasync", "splice"),
        *("getrandom", "getresgid", "getresuid", "setresgid", "setresuid", "setns", "unshare"),
        *("getxattr", "listxattr", "removexattr", "setxattr", "posix_fadvise", "posix_fallocate"),
        *("sched_getaffinity", "sched_setaffinity", "sched_getscheduler", "sched_setscheduler"),
        *("timerfd_create", "timerfd_gettime", "timerfd_settime"),
    ),
    "socket": (
        *("SOCK_CLOEXEC", "SOCK_NONBLOCK", "MSG_CMSG_CLOEXEC", "MSG_MORE", "SCM_CREDENTIALS"),
        *("SO_PASSCRED", "SO_PEERCRED", "SO_MARK", "TCP_CORK", "TCP_KEEPIDLE", "TCP_QUICKACK"),
        *("TCP_INFO", "TCP_USER_TIMEOUT", "TCP_DEFER_ACCEPT", "AF_NETLINK", "AF_VSOCK"),
    ),
    "signal": ("pidfd_send_signal", "sigtimedwait", "sigwaitinfo", "SIGRTMIN", "SIGPWR"),
    "resource": ("prlimit", "RUSAGE_THREAD", "RLIMIT_NICE", "RLIMIT_RTPRIO", "RLIMIT_SIGPENDING"),
    "time": ("CLOCK_BOOTTIME", "CLOCK_TAI"),
    "mmap": ("MAP_POPULATE", "MADV_DONTFORK", "MADV_HUGEPAGE", "MADV_REMOVE"),
    "fcntl": ("F_ADD_SEALS", "F_GET_SEALS", "F_SETPIPE_SZ", "F_GETPIPE_SZ", "F_SETSIG"),
}
