//! More attempts to get out: by what processes of one user share, by devices and terminals, by what the kernel does on
//! behalf of a process, and by programs that run other programs. Names as in `attempts.rs`; `$ABSTRACT` is a socket of
//! somebody else without a path, `$SHM` memory that somebody shares by number, `$PTS` the terminal of somebody else.

use super::attempts::Layer::{Calls, Files, Metadata, Processes};
use super::attempts::{Attempt, free, perhaps};

pub(super) const MORE: &[Attempt] = &[
    // Actions of the kernel on behalf of a process.
    free(
        "a program in memory",
        Files,
        r##"python3 -c 'import os
fd = os.memfd_create("x", 0)
os.write(fd, b"#!/bin/sh\necho x > $OUT/planted\n")
os.execv("/proc/self/fd/%d" % fd, ["x"])'"##,
    ),
    free(
        "an exchange of names",
        Files,
        r#"echo x > f; perl -MPOSIX=uname -e '$n = (uname)[4] eq "x86_64" ? 316 : 276; $f = "f"; $k = "$ENV{OUT}/kept"; syscall($n, -100, $f, -100, $k, 2)'"#,
    ),
    perhaps(
        "a file without a name that is given one",
        Files,
        r#"python3 -c 'import os
fd = os.open(os.environ["OUT"], os.O_TMPFILE | os.O_WRONLY)
os.link("/proc/self/fd/%d" % fd, os.environ["OUT"] + "/planted", src_dir_fd=0, follow_symlinks=True)'"#,
    ),
    free(
        "memory that is a file",
        Files,
        r#"python3 -c 'import mmap, os
f = open(os.environ["OUT"] + "/kept", "r+b")
mmap.mmap(f.fileno(), 0)[0:1] = b"x"'"#,
    ),
    perhaps("a core dump", Files, "cd link; ulimit -c unlimited; bash -c 'kill -SEGV $$'"),
    free("the root of the parent", Files, "echo x > /proc/$PPID/root$OUT/planted"),
    free(
        "the times of an open file",
        Metadata,
        r#"python3 -c 'import os; os.utime(os.open(os.environ["OUT"] + "/kept", os.O_RDONLY), (1, 1))'"#,
    ),
    perhaps(
        "an attribute",
        Metadata,
        r#"python3 -c 'import os; os.setxattr(os.environ["OUT"] + "/kept", "user.x", b"1"); print("ESCAPED")'"#,
    ),
    perhaps("a flag of a file", Metadata, "chattr +A $OUT/kept && echo ESCAPED"),
    // Processes that stay when others go.
    free(
        "forked twice",
        Files,
        r#"mkfifo p; perl -MPOSIX=setsid -e 'fork && exit; setsid; fork && exit; system "echo x > $ENV{OUT}/planted"; open P, ">", "p"'; cat p"#,
    ),
    free(
        "when the command is over",
        Files,
        // Until somebody else has taken it over.
        r#"(while grep -q "^PPid:.$$\$" /proc/$BASHPID/status; do sleep 0.01; done; echo x > $OUT/planted) &"#,
    ),
    // Programs that run other programs.
    free(
        "a monitor of git",
        Files,
        "git init -q r; cd r; git -c core.fsmonitor='echo x > $OUT/planted; false' status",
    ),
    free(
        "a converter of git",
        Files,
        "git init -q r; cd r; echo '* diff=c' > .gitattributes; echo x > f; git add f; echo y > f; \
         git -c diff.c.textconv='echo x > $OUT/planted; cat' diff",
    ),
    free(
        "a filter of git",
        Files,
        "git init -q r; cd r; echo '* filter=c' > .gitattributes; echo x > f; \
         git -c filter.c.clean='echo x > $OUT/planted; cat' add f",
    ),
    free(
        "a way of git to other machines",
        Files,
        "git -c core.sshCommand='echo x > $OUT/planted; false' ls-remote ssh://nobody.invalid/x",
    ),
    free(
        "hooks of git elsewhere",
        Files,
        "git init -q r; cd r; mkdir h; printf '#!/bin/sh\necho x > $OUT/planted\n' > h/pre-commit; chmod +x h/pre-commit; \
         git -c core.hooksPath=h -c user.name=n -c user.email=e commit -q --allow-empty -m m",
    ),
    free(
        "a script of npm",
        Files,
        r#"echo '{"scripts":{"x":"echo x > $OUT/planted"}}' > package.json; npm run -s x"#,
    ),
    free(
        "a module of Python",
        Files,
        r#"echo 'import os; open(os.environ["OUT"] + "/planted", "w")' > sitecustomize.py; PYTHONPATH=$PWD python3 -c pass"#,
    ),
    free(
        "an option of Node",
        Files,
        r#"echo 'require("fs").writeFileSync(process.env.OUT + "/planted", "x")' > m.cjs; NODE_OPTIONS="--require $PWD/m.cjs" node -e 0"#,
    ),
    free(
        "an auditing library",
        Files,
        "printf '#include <stdlib.h>\nunsigned la_version(unsigned v) { unsetenv(\"LD_AUDIT\"); \
         system(\"echo x > $OUT/planted\"); return v; }' > l.c; cc -shared -fPIC -o l.so l.c; LD_AUDIT=$PWD/l.so /bin/true",
    ),
    // Devices and terminals.
    free("something to read for somebody else", Files, "echo x > $PTS && echo ESCAPED"),
    free("what somebody else types", Processes, "exec 3< $PTS && echo ESCAPED"),
    perhaps(
        "a disk",
        Processes,
        "for disk in /dev/[sv]d? /dev/xvd? /dev/nvme?n? /dev/mmcblk? /dev/dm-?; do : < $disk && echo ESCAPED; done",
    ),
    perhaps("the messages of the kernel", Processes, ": < /dev/kmsg && echo ESCAPED"),
    perhaps("a keyboard", Processes, "for device in /dev/input/event*; do : < $device && echo ESCAPED; done"),
    // Other processes.
    free("the environment of the parent", Processes, ": < /proc/$PPID/environ && echo ESCAPED"),
    free(
        "the memory of a process by a call",
        Processes,
        r#"perl -MPOSIX=uname,:errno_h -e '$n = (uname)[4] eq "x86_64" ? 311 : 271; $b = "x"; $v = pack("PQ", $b, 1); $w = pack("QQ", 1, 1); $r = syscall($n, $ENV{VICTIM} + 0, $v, 1, $w, 1, 0); print "ESCAPED" if $r >= 0 || $! == EFAULT'"#,
    ),
    free(
        "a signal by handle",
        Processes,
        r#"python3 -c 'import os, signal; signal.pidfd_send_signal(os.pidfd_open(int(os.environ["VICTIM"])), 9)' && echo ESCAPED"#,
    ),
    free(
        "a signal that a file sends",
        Processes,
        r#"python3 -c 'import fcntl, os
r, w = os.pipe()
fcntl.fcntl(r, fcntl.F_SETOWN, int(os.environ["VICTIM"]))
fcntl.fcntl(r, 10, 9)
fcntl.fcntl(r, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
os.write(w, b"x")'; while kill -0 $VICTIM 2> /dev/null && ! grep -q State.*Z /proc/$VICTIM/status && [ $((n++)) -lt 100 ]; do sleep 0.01; done"#,
    ),
    perhaps(
        "a debugger for the parent",
        Processes,
        r#"perl -MPOSIX=uname -e '$n = (uname)[4] eq "x86_64" ? 101 : 117; print "ESCAPED" if syscall($n, 16902, getppid(), 0, 0) >= 0'"#,
    ),
    free("the limits of a process", Calls, "prlimit --pid $VICTIM --nofile=0:0 && echo ESCAPED"),
    free(
        "memory that is shared by number",
        Calls,
        r#"perl -e 'print "ESCAPED" if shmwrite($ENV{SHM}, "x", 0, 1)'"#,
    ),
    // Services.
    free(
        "a socket of somebody else without a path",
        Calls,
        r#"python3 -c 'import os, socket; socket.socket(socket.AF_UNIX).connect("\0" + os.environ["ABSTRACT"])'"#,
    ),
    free(
        "a datagram from a pair that is called raw",
        Calls,
        r#"perl -MSocket -e 'socketpair(A, B, AF_UNIX, SOCK_RAW, 0) && send(A, "x", 0, sockaddr_un("datagram"))'"#,
    ),
    free("an agent with keys", Calls, "SSH_AUTH_SOCK=$PWD/stream timeout 2 ssh-add -l"),
    perhaps("a container", Calls, "timeout 5 docker -H unix://$PWD/stream ps"),
    perhaps(
        "a bus",
        Calls,
        "DBUS_SESSION_BUS_ADDRESS=unix:path=$PWD/stream timeout 5 dbus-send --session --dest=a.b / a.b.c",
    ),
    perhaps("a unit of systemd", Calls, "timeout 5 systemd-run true && echo ESCAPED"),
    // Doors of the kernel.
    perhaps("faults", Calls, r#"perl -e 'print "ESCAPED" if syscall(323, 1) >= 0'"#),
    perhaps(
        "a program for the kernel",
        Calls,
        r#"perl -e '$a = pack("LLLL", 2, 4, 4, 1) . "\0" x 112; print "ESCAPED" if syscall(321, 0, $a, 120) >= 0'"#,
    ),
    perhaps(
        "a namespace by clone",
        Files,
        r#"perl -e '$r = syscall(56, 0x10000011, 0, 0, 0, 0); print "ESCAPED" if $r > 0'"#,
    ),
    perhaps(
        "a call of programs with short pointers",
        Calls,
        r#"perl -e 'print "ESCAPED" if syscall(0x40000029, 1, 1, 0) >= 0'"#,
    ),
    perhaps(
        "a call of 32-bit programs",
        Calls,
        "printf '#include <stdio.h>\n#include <sys/mman.h>\nint main(void) { unsigned *a = mmap(0, 4096, 3, \
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0); a[0] = 1; a[1] = 1; a[2] = 0; long r; \
         __asm__ volatile(\"int $0x80\" : \"=a\"(r) : \"a\"(102L), \"b\"(1L), \"c\"(a) : \"memory\"); \
         if ((int)r >= 0) puts(\"ESCAPED\"); return 0; }' > c.c; cc -o c c.c && ./c",
    ),
];
