/**
 * The programs of this machine that base images are built from, because a registry may be unavailable: a static busybox, bash,
 * the system's Python with its standard library, the Node that runs the runner, and the libraries that they load.
 */
import { execFile } from 'node:child_process';
import fs from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** One entry of an image, with its absolute path in the image. */
export type Part =
  | { readonly type: 'directory'; readonly path: string; readonly mode: number }
  | { readonly type: 'link'; readonly path: string; readonly target: string }
  | { readonly type: 'text'; readonly path: string; readonly text: string }
  | { readonly type: 'file'; readonly path: string; readonly source: string };

/** The user id of programs in containers. */
export const SANDBOX_UID = 1_000;

const BUSYBOX = ['/bin/busybox', '/usr/bin/busybox', '/usr/local/bin/busybox'];
const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt';
const PASSWD = `root:x:0:0:root:/:/bin/sh\nsandbox:x:${SANDBOX_UID}:${SANDBOX_UID}::/work:/bin/sh\n`;
const GROUP = `root:x:0:\nsandbox:x:${SANDBOX_UID}:\n`;
/** Parts of the standard library that are left out. */
const UNNEEDED =
  /^(test|tests|idlelib|tkinter|turtledemo|turtle\.py|lib2to3|ensurepip|site-packages|dist-packages|config-.*)$/;

/** The minimum of every image: a shell with the common commands, and the mount points of the sandbox. */
async function basicParts(): Promise<Part[]> {
  const busybox = await staticBusybox();
  const { stdout } = await run(busybox, ['--list'], { env: {} });
  const applets = stdout.split('\n').filter((name) => /^[\w[.-]+$/.test(name) && name !== 'busybox');
  return [
    ...['/bin', '/etc', '/cortex', '/work', '/dev', '/proc', '/sys', '/usr', '/usr/bin'].map((place): Part => ({
      type: 'directory',
      path: place,
      mode: 0o755,
    })),
    { type: 'directory', path: '/tmp', mode: 0o1777 },
    { type: 'text', path: '/etc/passwd', text: PASSWD },
    { type: 'text', path: '/etc/group', text: GROUP },
    { type: 'file', path: '/bin/busybox', source: busybox },
    ...applets.map((name): Part => ({ type: 'link', path: `/bin/${name}`, target: 'busybox' })),
  ];
}

/** With bash, if this machine has it. @throws Error if busybox-static is missing, or this is not Linux */
export async function shellParts(): Promise<Part[]> {
  const basic = await basicParts();
  const bash = await fs.realpath('/bin/bash').catch(() => null);
  if (bash === null || basic.some(({ path: place }) => place === '/bin/bash')) return basic;
  return [...basic, { type: 'file', path: '/bin/bash', source: bash }, ...(await librariesOf([bash]))];
}

/** @throws Error if Python is missing, or this is not Linux */
export async function pythonParts(): Promise<Part[]> {
  const { executable, library } = await systemPython();
  const files = await filesBelow(library);
  const loaded = [executable, ...files.filter((file) => file.endsWith('.so'))];
  return [
    ...(await basicParts()),
    { type: 'file', path: executable, source: executable },
    ...(executable === '/usr/bin/python3' ? [] : [link('/usr/bin/python3', executable)]),
    link('/usr/bin/python', 'python3'),
    ...files.map((file): Part => ({ type: 'file', path: file, source: file })),
    ...(await librariesOf(loaded)),
  ];
}

/** Python with pip, for building images with packages. @throws Error if pip is missing */
export async function pipParts(): Promise<Part[]> {
  const { pip, library } = await systemPython();
  if (pip === null) throw new Error('pip is not installed for the system Python');
  const files = await filesBelow(pip);
  const hasCertificates = await fs.access(CERTIFICATES).then(
    () => true,
    () => false,
  );
  return [
    ...(await pythonParts()),
    ...files.map((file): Part => ({
      type: 'file',
      path: path.join(library, 'pip', path.relative(pip, file)),
      source: file,
    })),
    ...(hasCertificates ? [{ type: 'file', path: CERTIFICATES, source: CERTIFICATES } as const] : []),
  ];
}

/** @throws Error if this is not Linux */
export async function nodeParts(): Promise<Part[]> {
  const node = await fs.realpath(process.execPath);
  return [
    ...(await basicParts()),
    { type: 'file', path: '/usr/bin/node', source: node },
    ...(await librariesOf([node])),
  ];
}

function link(from: string, target: string): Part {
  return { type: 'link', path: from, target };
}

async function staticBusybox(): Promise<string> {
  if (process.platform !== 'linux') throw new Error('base images can be built on Linux only');
  for (const place of BUSYBOX) {
    const known = await fs.stat(place).catch(() => null);
    if (known?.isFile() !== true) continue;
    // ldd fails for statically linked programs
    const dynamic = await run('ldd', [place]).then(
      ({ stdout }) => stdout.includes('=>') || stdout.includes('ld-'),
      () => false,
    );
    if (!dynamic) return place;
  }
  throw new Error('busybox-static is not installed');
}

interface Python {
  readonly executable: string;
  readonly library: string;
  /** Directory of the system's pip. */
  readonly pip: string | null;
}

async function systemPython(): Promise<Python> {
  const ask = `
import importlib.util, json, os, sys, sysconfig
pip = importlib.util.find_spec("pip")
print(json.dumps({"executable": os.path.realpath(sys.executable), "library": sysconfig.get_path("stdlib"),
  "pip": os.path.dirname(pip.origin) if pip and pip.origin else None}))`;
  for (const python of ['/usr/bin/python3', 'python3']) {
    const answer = await run(python, ['-I', '-c', ask]).catch(() => null);
    if (answer !== null) return JSON.parse(answer.stdout) as Python;
  }
  throw new Error('python3 is not installed');
}

/** The version of this machine's Python, such as `3.12`; null if there is none. */
export async function pythonVersion(): Promise<string | null> {
  const python = await systemPython().catch(() => null);
  return python === null ? null : (/python(\d+\.\d+)$/.exec(python.library)?.[1] ?? null);
}

/** Files of a package or a library, without unneeded ones; follows links. */
async function filesBelow(directory: string): Promise<string[]> {
  const found: string[] = [];
  const open = [directory];
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    for (const entry of await fs.readdir(at, { withFileTypes: true })) {
      if (UNNEEDED.test(entry.name)) continue;
      const place = path.join(at, entry.name);
      const known = entry.isSymbolicLink() ? await fs.stat(place).catch(() => null) : entry;
      if (known === null) continue;
      if (known.isDirectory()) open.push(place);
      else if (known.isFile() && !place.endsWith('.a')) found.push(place);
    }
  }
  return found.toSorted();
}

/** Shared libraries at the paths where the loader looks for them, and the loader. */
async function librariesOf(files: readonly string[]): Promise<Part[]> {
  const { stdout } = await run('ldd', [...files], { maxBuffer: 16 * 1_048_576 });
  const libraries = new Set<string>();
  for (const line of stdout.split('\n')) {
    const place = /^\t(?:\S+ => )?(\/\S+) \(0x/.exec(line)?.[1];
    if (place !== undefined) libraries.add(place);
    const missing = /^\t(\S+) => not found/.exec(line)?.[1];
    if (missing !== undefined) throw new Error(`the library ${missing} is missing`);
  }
  return [...libraries].toSorted().map((place): Part => ({ type: 'file', path: place, source: place }));
}
