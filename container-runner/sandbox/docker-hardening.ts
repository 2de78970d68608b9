/**
 * Hardening of every container (R2): no network, no files except its own and those in memory, no capabilities, no new
 * privileges, an unprivileged user, a system call filter, and limits on all resources.
 */
import path from 'node:path';

import type Docker from 'dockerode';

import { SANDBOX_UID } from '../images/local-parts.ts';
import { limits } from '../limits.ts';
import { WORKSPACE } from './given-files.ts';
import type { ResourceLimits } from './sandbox.ts';

const MEBIBYTE = 1_048_576;
const USER = `${SANDBOX_UID}:${SANDBOX_UID}`;
/** Processes of the guest: init, deadline and their children. */
const GUEST_PROCESSES = 6;
/** The code and the inputs of a job, twice if they are also on standard input. */
const DATA_BYTES = 4 * limits.bodyBytes;
/** Hidden kernel interfaces: the engine's default list, and all of /sys. */
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

/** The resources that can be changed in a running container. */
export function adjustable(resources: ResourceLimits): Record<string, number> {
  return {
    Memory: resources.memoryMb * MEBIBYTE,
    // memory plus swap: no swap
    MemorySwap: resources.memoryMb * MEBIBYTE,
    NanoCpus: Math.round(resources.cpus * 1e9),
    PidsLimit: resources.processes + GUEST_PROCESSES,
  };
}

/** @param withWorkspace false: an image that has a folder of this name keeps it */
export function hardened(resources: ResourceLimits, seccomp: string, withWorkspace = false): Docker.HostConfig {
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
    // output goes to the attached connection only; a log would fill the disk
    LogConfig: { Type: 'none', Config: {} },
    Tmpfs: {
      '/work': memoryPlace(disk),
      '/tmp': memoryPlace(disk),
      '/dev/shm': memoryPlace(disk),
      '/cortex': memoryPlace(DATA_BYTES),
      // the guest makes it read-only for a program without a workspace
      ...(withWorkspace ? { [WORKSPACE]: memoryPlace(limits.workspaceRoomMb * MEBIBYTE) } : {}),
    },
    Ulimits: [
      ulimit('nofile', limits.openFiles),
      ulimit('fsize', Math.max(disk, DATA_BYTES)),
      ulimit('core', 0),
      ulimit('memlock', 0),
      ulimit('msgqueue', 0),
    ],
    // when memory is short, the kernel kills jobs before the runner and the engine
    OomScoreAdj: 500,
    MaskedPaths: MASKED,
    ReadonlyPaths: READ_ONLY,
    RestartPolicy: { Name: 'no' },
  } as Docker.HostConfig;
}

/**
 * Mounts the volumes that an image declares as tmpfs. The engine would create a directory on the machine's disk for each,
 * which the program could fill.
 *
 * @param taken paths that already have another mount
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

/** Options of every container. */
export const CONTAINER = {
  User: USER,
  WorkingDir: '/work',
  Hostname: 'sandbox',
  // the image's own check would run beside the program
  Healthcheck: { Test: ['NONE'] },
  NetworkDisabled: true,
  OpenStdin: true,
  StdinOnce: true,
  AttachStdin: true,
  AttachStdout: true,
  AttachStderr: true,
  Tty: false,
} as const satisfies Docker.ContainerCreateOptions;

/** A tmpfs: it counts as the container's memory, and its number of files is limited. */
function memoryPlace(bytes: number): string {
  return `rw,exec,nosuid,nodev,mode=0755,uid=${SANDBOX_UID},gid=${SANDBOX_UID},size=${bytes},nr_inodes=${limits.inodes}`;
}
