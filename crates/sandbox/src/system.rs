//! System paths that programs need to run. None of them is private to a user.

/// Programs, libraries and what comes with them.
pub const PROGRAMS: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/nix/store",
    "/snap",
    "/home/linuxbrew/.linuxbrew",
    "/var/lib/flatpak",
];

/// Settings of the machine that programs read when they start. Who has an account here (`passwd`) is not among them.
pub const SETTINGS: &[&str] = &[
    "/etc/alternatives",
    "/etc/crypto-policies",
    "/etc/debian_version",
    "/etc/inputrc",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/ld.so.preload",
    "/etc/locale.alias",
    "/etc/locale.conf",
    "/etc/localtime",
    "/etc/lsb-release",
    "/etc/magic",
    "/etc/magic.mime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/pki/tls/openssl.cnf",
    "/etc/protocols",
    "/etc/services",
    "/etc/ssl/openssl.cnf",
    "/etc/terminfo",
    "/etc/timezone",
];

/// Further files for programs that may use the network: name resolution and certificates.
pub const NETWORK: &[&str] = &[
    "/etc/ca-certificates",
    "/etc/gai.conf",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/pki",
    "/etc/resolv.conf",
    "/etc/ssl/certs",
    "/run/systemd/resolve",
    "/var/lib/ca-certificates",
];

/// Facts about the machine.
pub const MACHINE: &[&str] = &[
    "/sys/devices/system/cpu",
    "/sys/devices/system/node",
    "/sys/fs/cgroup",
    "/sys/kernel/mm/transparent_hugepage",
];

/// Facts about the machine in `/proc`, for commands without a process namespace, which must not read other processes.
pub const PROC: &[&str] = &[
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/sys/kernel/osrelease",
    "/proc/sys/kernel/ostype",
    "/proc/sys/kernel/random",
    "/proc/uptime",
    "/proc/version",
];
