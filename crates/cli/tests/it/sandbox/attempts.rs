//! Attempts to get out, as data. `$OUT` is a directory outside, `$VICTIM` a process outside, `$PORT` a port outside;
//! `link` in the working directory leads to `$OUT`, and `stream` and `datagram` are services of somebody else.

#[derive(Debug, Clone, Copy)]
pub(super) struct Attempt {
    pub(super) name: &'static str,
    /// The layer that has to deny it.
    pub(super) layer: Layer,
    pub(super) script: &'static str,
    /// Whether it does harm without a sandbox, on every machine.
    pub(super) free: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layer {
    /// Landlock, and read-only mounts before it.
    Files,
    /// Read-only mounts alone.
    Metadata,
    /// Landlock's domains, and what is not readable.
    Processes,
    /// The filter of system calls, and Landlock for TCP.
    Calls,
}
use Layer::{Calls, Files, Metadata, Processes};

pub(super) const fn free(name: &'static str, layer: Layer, script: &'static str) -> Attempt {
    Attempt { name, layer, script, free: true }
}

/// Needs a privilege or a feature of the kernel that a machine may lack.
pub(super) const fn perhaps(name: &'static str, layer: Layer, script: &'static str) -> Attempt {
    Attempt { name, layer, script, free: false }
}

pub(super) const CONNECT_STREAM: &str = r#"perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0) && connect(S, sockaddr_un("stream")) && print "ESCAPED"'"#;

pub(super) const ATTEMPTS: &[Attempt] = &[
    free("write by name", Files, "echo x > $OUT/planted"),
    free("write over", Files, "echo x > $OUT/kept"),
    free("append", Files, "echo x >> $OUT/kept"),
    free("dots", Files, "echo x > ../outside/planted"),
    free("symbolic link", Files, "echo x > link/planted"),
    free("a link of one's own", Files, "ln -s $OUT/kept mine && echo x > mine"),
    free("a link swapped in between", Files, "mkdir d; rmdir d; ln -sfn $OUT d; echo x > d/planted"),
    perhaps(
        "a race of links",
        Files,
        "mkdir a; ln -s $OUT b; (for i in $(seq 60); do mv -T a d; mv -T d a; mv -T b d; mv -T d b; done) & \
         while kill -0 $!; do echo x > d/planted; done 2> /dev/null; wait",
    ),
    free("hard link in, then write", Files, "ln $OUT/kept mine; echo x > mine"),
    free("hard link out", Files, "echo x > f; ln f $OUT/planted"),
    free("rename over", Files, "echo x > f; mv f $OUT/kept"),
    free("rename away", Files, "mv $OUT/kept taken"),
    free("remove", Files, "rm -f $OUT/kept"),
    free("remove a directory", Files, "rm -rf $OUT/dir"),
    free("make a directory", Files, "mkdir $OUT/planted"),
    free("truncate", Files, "truncate -s 0 $OUT/kept"),
    free("truncate without opening", Files, "perl -e 'truncate(\"$ENV{OUT}/kept\", 0)'"),
    free("change the mode", Metadata, "chmod 777 $OUT/kept"),
    free("change the times", Metadata, "touch -d 2001-01-01 $OUT/kept"),
    perhaps("change the owner", Metadata, "chown 12345 $OUT/kept"),
    free(
        "change the mode of an open file",
        Metadata,
        "perl -e 'open F, \"<\", \"$ENV{OUT}/kept\"; chmod 0777, *F'",
    ),
    free("a pipe with a name", Files, "mkfifo $OUT/planted"),
    perhaps("a device", Files, "mknod disk b 8 0 && test -b disk && echo ESCAPED"),
    free("a start-up file of the shell", Files, "echo evil >> $HOME/.bashrc"),
    free("a program on the path", Files, "mkdir -p $HOME/bin; echo evil > $HOME/bin/git"),
    free("a nested shell", Files, "bash -c \"sh -c 'echo x > $OUT/planted'\""),
    free("a cleared environment", Files, "env -i OUT=$OUT /bin/sh -c 'echo x > $OUT/planted'"),
    free("in the background", Files, "echo x > $OUT/planted & wait"),
    free("a daemon", Files, "mkfifo p; setsid -f sh -c 'echo x > $OUT/planted; echo > p'; cat p"),
    free(
        "a hook of git",
        Files,
        "git init -q r; cd r; printf '#!/bin/sh\necho x > $OUT/planted\n' > .git/hooks/pre-commit; \
         chmod +x .git/hooks/pre-commit; git -c user.name=n -c user.email=e commit -q --allow-empty -m m",
    ),
    free(
        "a preloaded library",
        Files,
        "printf '#include <stdlib.h>\n__attribute__((constructor)) void f(void) { unsetenv(\"LD_PRELOAD\"); \
         system(\"echo x > $OUT/planted\"); }' > l.c; cc -shared -fPIC -o l.so l.c; LD_PRELOAD=$PWD/l.so /bin/true",
    ),
    free(
        "a start-up file by variable",
        Files,
        "echo 'echo x > $OUT/planted' > s; BASH_ENV=$PWD/s bash -c true",
    ),
    free("an alias of git", Files, "git -c alias.x='!echo x > $OUT/planted' x"),
    free("git elsewhere", Files, "git init -q $OUT/planted"),
    free("the root of a process", Files, "echo x > /proc/self/root$OUT/planted"),
    free("the directory of a process", Files, "cd link; echo x > /proc/self/cwd/planted"),
    free("open for reading, again for writing", Files, "exec 5< $OUT/kept; echo x > /proc/self/fd/5"),
    free(
        "a file that is passed on, again for writing",
        Files,
        r#"python3 -c 'import os, socket
a, b = socket.socketpair()
socket.send_fds(a, [b"x"], [os.open(os.environ["OUT"] + "/kept", os.O_RDONLY)])
fd = socket.recv_fds(b, 1, 1)[1][0]
open("/proc/self/fd/%d" % fd, "w").write("x")'"#,
    ),
    free("a copy", Files, "cp -a $OUT/dir $OUT/planted"),
    free("a shell of one's own", Files, "cp /bin/bash b; ./b -c 'echo x > $OUT/planted'"),
    free("another language", Files, "perl -e 'open F, \">\", \"$ENV{OUT}/planted\"; print F 1'"),
    perhaps("a user namespace", Files, "unshare -Ur true && echo ESCAPED"),
    perhaps("a mount namespace", Files, "unshare -m true && echo ESCAPED"),
    perhaps("a bind mount", Files, "mkdir m; mount --bind $OUT m && echo ESCAPED"),
    perhaps("mounts made writable again", Files, "mount -o remount,rw / && echo ESCAPED"),
    perhaps("another root", Files, "chroot / true && echo ESCAPED"),
    perhaps(
        "a schedule",
        Files,
        "echo '* * * * * true' > /etc/cron.d/planted && rm /etc/cron.d/planted && echo ESCAPED",
    ),
    perhaps(
        "settings of the kernel",
        Files,
        "f=/proc/sys/kernel/domainname; v=$(cat $f); echo $v > $f && echo ESCAPED",
    ),
    free("a key", Processes, "cat $HOME/.ssh/id"),
    free("a key through a link", Processes, "ln -s $HOME/.ssh k; cat k/id"),
    free("a key through procfs", Processes, "cat /proc/self/root$HOME/.ssh/id"),
    free("a key linked in", Processes, "ln $HOME/.ssh/id k; cat k"),
    free("the environment of a process", Processes, "tr '\\0' '\\n' < /proc/$VICTIM/environ"),
    free("the root of another process", Processes, "cat /proc/$VICTIM/root$HOME/.ssh/id"),
    free("the directory of another process", Processes, "ls /proc/$VICTIM/cwd/ > /dev/null && echo ESCAPED"),
    perhaps("the memory of a process", Processes, "head -c 0 /proc/$VICTIM/mem && echo ESCAPED"),
    free(
        "the files of a process",
        Processes,
        "ls -l /proc/$VICTIM/fd/0 2> /dev/null | grep -q -- '->' && echo ESCAPED",
    ),
    free("a signal", Processes, "kill -9 $VICTIM && echo ESCAPED"),
    free("a signal that does nothing", Processes, "kill -0 $VICTIM && echo ESCAPED"),
    perhaps(
        "a debugger",
        Processes,
        r#"perl -MPOSIX=uname -e '$n = (uname)[4] eq "x86_64" ? 101 : 117; print "ESCAPED" if syscall($n, 16, $ENV{VICTIM} + 0, 0, 0) >= 0'"#,
    ),
    free("TCP by bash", Calls, "echo x > /dev/tcp/127.0.0.1/$PORT"),
    free("UDP by bash", Calls, "echo x > /dev/udp/127.0.0.1/9 && echo ESCAPED"),
    free(
        "a TCP socket",
        Calls,
        r#"perl -MSocket -e 'socket(S, AF_INET, SOCK_STREAM, 0) && connect(S, pack_sockaddr_in($ENV{PORT}, inet_aton("127.0.0.1")))'"#,
    ),
    free(
        "a server",
        Calls,
        r#"perl -MSocket -e 'socket(S, AF_INET, SOCK_STREAM, 0) && listen(S, 1) && print "ESCAPED"'"#,
    ),
    free("IPv6", Calls, r#"perl -MSocket -e 'socket(S, AF_INET6, SOCK_DGRAM, 0) && print "ESCAPED"'"#),
    perhaps("raw packets", Calls, r#"perl -e 'socket(S, 17, 3, 0) && print "ESCAPED"'"#),
    free("netlink", Calls, r#"perl -e 'socket(S, 16, 3, 0) && print "ESCAPED"'"#),
    free("a socket with a path", Calls, CONNECT_STREAM),
    free(
        "a socket without a path",
        Calls,
        r#"perl -e 'socket(S, 1, 1, 0) && bind(S, pack("S a*", 1, "\0hangar-$$")) && print "ESCAPED"'"#,
    ),
    free(
        "a datagram from a pair",
        Calls,
        r#"perl -MSocket -e 'socketpair(A, B, AF_UNIX, SOCK_DGRAM, 0) && send(A, "x", 0, sockaddr_un("datagram"))'"#,
    ),
    perhaps(
        "io_uring",
        Calls,
        r#"perl -e '$b = "\0" x 256; $r = syscall(425, 8, $b); print "ESCAPED" if $r >= 0'"#,
    ),
    perhaps(
        "a tree of mounts",
        Calls,
        r#"perl -e '$p = "/"; print "ESCAPED" if syscall(428, -100, $p, 1) >= 0'"#,
    ),
    perhaps("a file system", Calls, r#"perl -e '$p = "tmpfs"; print "ESCAPED" if syscall(430, $p, 0) >= 0'"#),
    perhaps(
        "a file taken from a process",
        Calls,
        r#"perl -e '$p = syscall(434, $ENV{VICTIM} + 0, 0); print "ESCAPED" if $p >= 0 && syscall(438, $p, 0, 0) >= 0'"#,
    ),
];
