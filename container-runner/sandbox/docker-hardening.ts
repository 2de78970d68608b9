/**
 * What a container may do, whatever runs in it (R2): no network, nothing but its own files and those in
 * memory, no capabilities, no new rights, an unprivileged user, a system call filter, and a limit on
 * everything that can be used up.
 */
import path from 'node:path';

import type Docker from 'dockerode';

import { SANDBOX_UID } from '../images/local-parts.ts';
import { limits } from '../limits.ts';
import type { ResourceLimits } from './sandbox.ts';

const MEBIBYTE = 1_048_576;
const USER = `${SANDBOX_UID}:${SANDBOX_UID}`;
/** The guest's own: first process, deadline, and what they start. */
const GUEST_PROCESSES = 6;
/** The data of a job: its code and inputs, twice where they also come on standard input. */
const DATA_BYTES = 4 * limits.bodyBytes;
/** What of the kernel is nobody's business; the engine's own list, and all of /sys. */
const MASKED = [
  '/sys',
  '/proc/acpi',
  '/proc/asound',
  '/proc/interrupts',
  '/proc/kcore',
  '/proc/keys',
  '/proc/latency_stats',
  '/proc/sched_debug',
  '/proc/scsi',
  '/proc/timer_list',
  '/proc/timer_stats',
];
const READ_ONLY = ['/proc/bus', '/proc/fs', '/proc/irq', '/proc/sys', '/proc/sysrq-trigger'];

/** The resources that can be changed while a container runs. */
export function adjustable(resources: ResourceLimits): Record<string, number> {
  return {
    Memory: resources.memoryMb * MEBIBYTE,
    // together with swap: none of it
    MemorySwap: resources.memoryMb * MEBIBYTE,
    NanoCpus: Math.round(resources.cpus * 1e9),
    PidsLimit: resources.processes + GUEST_PROCESSES,
  };
}

export function hardened(resources: ResourceLimits, seccomp: string): Docker.HostConfig {
  const disk = resources.diskMb * MEBIBYTE;
  const ulimit = (name: string, value: number): Docker.Ulimit => ({ Name: name, Soft: value, Hard: value });
  return {
    ...adjustable(resources),
    NetworkMode: 'none',
    ReadonlyRootfs: true,
    Privileged: false,
    CapDrop: ['ALL'],
    SecurityOpt: ['no-new-privileges', `seccomp=${seccomp}`],
    IpcMode: 'private',
    CgroupnsMode: 'private',
    // what a program prints goes to the one who is attached; kept twice it would fill the disk
    LogConfig: { Type: 'none', Config: {} },
    Tmpfs: {
      '/work': memoryPlace(disk),
      '/tmp': memoryPlace(disk),
      '/dev/shm': memoryPlace(disk),
      '/cortex': memoryPlace(DATA_BYTES),
    },
    Ulimits: [
      ulimit('nofile', limits.openFiles),
      ulimit('fsize', Math.max(disk, DATA_BYTES)),
      ulimit('core', 0),
      ulimit('memlock', 0),
      ulimit('msgqueue', 0),
    ],
    // before the runner and the engine, whatever else is short of memory
    OomScoreAdj: 500,
    MaskedPaths: MASKED,
    ReadonlyPaths: READ_ONLY,
    RestartPolicy: { Name: 'no' },
  } as Docker.HostConfig;
}

/**
 * What an image declares as volumes, in memory: the engine would make each a directory of the machine's disk,
 * which the program may fill, whatever else is read-only.
 *
 * @param taken places that are something else already
 */
export function placesOf(volumes: unknown, diskMb: number, taken: readonly string[]): Docker.MountConfig {
  if (typeof volumes !== 'object' || volumes === null) return [];
  const places = new Set(Object.keys(volumes).map((place) => path.posix.resolve('/', place)));
  return [...places]
    .filter((place) => place !== '/' && !taken.includes(place))
    .map((place) => ({
      Type: 'tmpfs',
      Source: '',
      Target: place,
      TmpfsOptions: { SizeBytes: diskMb * MEBIBYTE, Mode: 0o1777 },
    }));
}

/** Common to every container of the sandbox. */
export const CONTAINER = {
  User: USER,
  WorkingDir: '/work',
  Hostname: 'sandbox',
  // an image's own would run beside the program, and before it
  Healthcheck: { Test: ['NONE'] },
  NetworkDisabled: true,
  OpenStdin: true,
  StdinOnce: true,
  AttachStdin: true,
  AttachStdout: true,
  AttachStderr: true,
  Tty: false,
} as const satisfies Docker.ContainerCreateOptions;

/** A file system in memory: counted as the container's own, with a bound on its files as well. */
function memoryPlace(bytes: number): string {
  return `rw,exec,nosuid,nodev,mode=0755,uid=${SANDBOX_UID},gid=${SANDBOX_UID},size=${bytes},nr_inodes=${limits.inodes}`;
}
