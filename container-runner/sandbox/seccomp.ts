/**
 * The system call filter of all sandboxes with kernel access: as classic BPF for `bwrap --seccomp`, and as a profile for
 * the Docker engine. Calls that programs need are allowed. Calls for debuggers, drivers, administration and sandbox
 * escapes fail with EPERM.
 */

interface Architecture {
  /** The engine's name of the architecture. */
  readonly engine: string;
  /** `AUDIT_ARCH_*`. Call numbers differ in other modes of the CPU. */
  readonly audit: number;
  /** First call number of another table (x32). */
  readonly foreignFrom: number | null;
  readonly calls: Readonly<Record<string, number>>;
}

/** New calls, which have the same number on all architectures. */
const COMMON = {
  io_uring_setup: 425,
  io_uring_enter: 426,
  io_uring_register: 427,
  open_tree: 428,
  move_mount: 429,
  fsopen: 430,
  fsconfig: 431,
  fsmount: 432,
  fspick: 433,
  clone3: 435,
  pidfd_getfd: 438,
  process_madvise: 440,
  mount_setattr: 442,
  quotactl_fd: 443,
  memfd_secret: 447,
  open_tree_attr: 467,
} as const;

const ARCHITECTURES: Readonly<Record<string, Architecture>> = {
  x64: {
    engine: 'SCMP_ARCH_X86_64',
    audit: 0xc000003e,
    foreignFrom: 0x40000000,
    calls: {
      ...COMMON,
      ioctl: 16,
      socket: 41,
      clone: 56,
      ptrace: 101,
      syslog: 103,
      mknod: 133,
      uselib: 134,
      personality: 135,
      vhangup: 153,
      modify_ldt: 154,
      pivot_root: 155,
      _sysctl: 156,
      adjtimex: 159,
      chroot: 161,
      acct: 163,
      settimeofday: 164,
      mount: 165,
      umount2: 166,
      swapon: 167,
      swapoff: 168,
      reboot: 169,
      iopl: 172,
      ioperm: 173,
      init_module: 175,
      delete_module: 176,
      quotactl: 179,
      nfsservctl: 180,
      lookup_dcookie: 212,
      clock_settime: 227,
      mbind: 237,
      set_mempolicy: 238,
      kexec_load: 246,
      add_key: 248,
      request_key: 249,
      keyctl: 250,
      migrate_pages: 256,
      mknodat: 259,
      unshare: 272,
      move_pages: 279,
      perf_event_open: 298,
      fanotify_init: 300,
      name_to_handle_at: 303,
      open_by_handle_at: 304,
      clock_adjtime: 305,
      setns: 308,
      process_vm_readv: 310,
      process_vm_writev: 311,
      kcmp: 312,
      finit_module: 313,
      kexec_file_load: 320,
      bpf: 321,
      userfaultfd: 323,
    },
  },
  arm64: {
    engine: 'SCMP_ARCH_AARCH64',
    audit: 0xc00000b7,
    foreignFrom: null,
    calls: {
      ...COMMON,
      lookup_dcookie: 18,
      ioctl: 29,
      mknodat: 33,
      umount2: 39,
      mount: 40,
      pivot_root: 41,
      nfsservctl: 42,
      chroot: 51,
      vhangup: 58,
      quotactl: 60,
      acct: 89,
      personality: 92,
      unshare: 97,
      kexec_load: 104,
      init_module: 105,
      delete_module: 106,
      clock_settime: 112,
      syslog: 116,
      ptrace: 117,
      reboot: 142,
      settimeofday: 170,
      adjtimex: 171,
      socket: 198,
      add_key: 217,
      request_key: 218,
      keyctl: 219,
      clone: 220,
      swapon: 224,
      swapoff: 225,
      mbind: 235,
      set_mempolicy: 237,
      migrate_pages: 238,
      move_pages: 239,
      perf_event_open: 241,
      fanotify_init: 262,
      name_to_handle_at: 264,
      open_by_handle_at: 265,
      clock_adjtime: 266,
      setns: 268,
      process_vm_readv: 270,
      process_vm_writev: 271,
      kcmp: 272,
      finit_module: 273,
      bpf: 280,
      userfaultfd: 282,
      kexec_file_load: 294,
    },
  },
};

/** Allowed for some arguments only, or with a special error. */
const SPECIAL: ReadonlySet<string> = new Set(['clone', 'clone3', 'socket', 'ioctl']);

const EPERM = 1;
const ENOSYS = 38;
const EAFNOSUPPORT = 97;
const RETURN_ALLOW = 0x7fff0000;
const RETURN_ERROR = 0x00050000;
const RETURN_KILL = 0x80000000;

/** All namespace flags; CLONE_NEWTIME works with clone3 only. */
const CLONE_NAMESPACES = 0x7e020000;
/** AF_UNIX, AF_INET, AF_INET6. */
const ADDRESS_FAMILIES = [1, 2, 10];
/** TIOCSTI and TIOCLINUX inject input into a terminal. */
const TERMINAL_INPUT = [0x5412, 0x541c];

const LOAD = 0x20;
const AND = 0x54;
const JUMP_EQUAL = 0x15;
const JUMP_AT_LEAST = 0x35;
const RETURN = 0x06;
/** Offsets in `struct seccomp_data`; both architectures are little-endian. */
const NUMBER = 0;
const AUDIT = 4;
const argument = (index: number): number => 16 + 8 * index;

type Instruction = readonly [code: number, ifTrue: number, ifFalse: number, value: number];

/** The filter as bytes; null for unsupported architectures. */
export function seccompFilter(architecture: string): Buffer | null {
  const known = ARCHITECTURES[architecture];
  if (known === undefined) return null;
  const { audit, foreignFrom, calls } = known;
  const number = (name: string): number => calls[name] ?? Number.NaN;
  const program: Instruction[] = [
    [LOAD, 0, 0, AUDIT],
    [JUMP_EQUAL, 1, 0, audit],
    [RETURN, 0, 0, RETURN_KILL],
    [LOAD, 0, 0, NUMBER],
    ...(foreignFrom === null ? [] : whenAtLeast(foreignFrom, ENOSYS)),
    ...Object.entries(calls).flatMap(([name, call]) => (SPECIAL.has(name) ? [] : whenEqual(call, EPERM))),
    // libraries fall back to clone, whose arguments can be checked
    ...whenEqual(number('clone3'), ENOSYS),
    ...onCall(number('clone'), [
      [LOAD, 0, 0, argument(0)],
      [AND, 0, 0, CLONE_NAMESPACES],
      [JUMP_EQUAL, 1, 0, 0],
      [RETURN, 0, 0, RETURN_ERROR | EPERM],
    ]),
    ...onCall(number('socket'), [
      [LOAD, 0, 0, argument(0)],
      ...ADDRESS_FAMILIES.map((family, at): Instruction => [JUMP_EQUAL, ADDRESS_FAMILIES.length - at, 0, family]),
      [RETURN, 0, 0, RETURN_ERROR | EAFNOSUPPORT],
    ]),
    ...onCall(number('ioctl'), [
      [LOAD, 0, 0, argument(1)],
      ...TERMINAL_INPUT.flatMap((request) => whenEqual(request, EPERM)),
    ]),
    [RETURN, 0, 0, RETURN_ALLOW],
  ];
  const bytes = Buffer.alloc(program.length * 8);
  program.forEach(([code, ifTrue, ifFalse, value], at) => {
    bytes.writeUInt16LE(code, at * 8);
    bytes.writeUInt8(ifTrue, at * 8 + 2);
    bytes.writeUInt8(ifFalse, at * 8 + 3);
    bytes.writeUInt32LE(value >>> 0, at * 8 + 4);
  });
  return bytes;
}

/** A rule of the engine's profile: these calls with these arguments return this error. */
interface ProfileRule {
  readonly names: readonly string[];
  readonly action: 'SCMP_ACT_ERRNO';
  readonly errnoRet: number;
  readonly args: readonly {
    readonly index: number;
    readonly value: number;
    readonly valueTwo: number;
    readonly op: 'SCMP_CMP_MASKED_EQ' | 'SCMP_CMP_GT';
  }[];
}

/** An `int` uses half of a register; the upper half is undefined. */
const LOW_HALF = 0xffffffff;

/**
 * The same filter as a Docker profile, because Docker's default allows io_uring, ptrace and virtual sockets. Null for
 * unsupported architectures. Calls in another CPU mode (x86, x32) kill the process, because the profile names one
 * architecture.
 */
export function seccompProfile(architecture: string): string | null {
  const known = ARCHITECTURES[architecture];
  if (known === undefined) return null;
  const denied = Object.keys(known.calls).filter((name) => !SPECIAL.has(name));
  const highest = Math.max(...ADDRESS_FAMILIES);
  const families = Array.from({ length: highest }, (_, at) => at).filter((at) => !ADDRESS_FAMILIES.includes(at));
  return JSON.stringify({
    defaultAction: 'SCMP_ACT_ALLOW',
    architectures: [known.engine],
    syscalls: [
      rule(denied, EPERM),
      rule(['clone3'], ENOSYS),
      // a mask compares all of its bits, so each namespace flag needs a separate rule
      ...bitsOf(CLONE_NAMESPACES).map((bit) => rule(['clone'], EPERM, masked(0, bit, bit))),
      ...families.map((family) => rule(['socket'], EAFNOSUPPORT, masked(0, LOW_HALF, family))),
      rule(['socket'], EAFNOSUPPORT, { index: 0, value: highest, valueTwo: 0, op: 'SCMP_CMP_GT' }),
      ...TERMINAL_INPUT.map((request) => rule(['ioctl'], EPERM, masked(1, LOW_HALF, request))),
    ],
  });
}

function rule(names: readonly string[], errnoRet: number, ...args: ProfileRule['args']): ProfileRule {
  return { names, action: 'SCMP_ACT_ERRNO', errnoRet, args };
}

function masked(index: number, mask: number, value: number): ProfileRule['args'][number] {
  return { index, value: mask, valueTwo: value, op: 'SCMP_CMP_MASKED_EQ' };
}

function bitsOf(mask: number): number[] {
  return Array.from({ length: 32 }, (_, at) => 2 ** at).filter((bit) => Math.floor(mask / bit) % 2 === 1);
}

function whenEqual(value: number, error: number): Instruction[] {
  return [
    [JUMP_EQUAL, 0, 1, value],
    [RETURN, 0, 0, RETURN_ERROR | error],
  ];
}

function whenAtLeast(value: number, error: number): Instruction[] {
  return [
    [JUMP_AT_LEAST, 0, 1, value],
    [RETURN, 0, 0, RETURN_ERROR | error],
  ];
}

/** Runs `body` for one call number; calls that fall through are allowed. Expects the number loaded, and loads it again. */
function onCall(call: number, body: readonly Instruction[]): Instruction[] {
  return [[JUMP_EQUAL, 0, body.length + 1, call], ...body, [RETURN, 0, 0, RETURN_ALLOW]];
}
