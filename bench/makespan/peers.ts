/** Other systems, each in a separate process under bench/peers, driven by messages. */
import { fork, spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { PACKAGE_ROOT } from '../../cli/project/folders.ts';

const PEERS = join(PACKAGE_ROOT, 'bench/peers');

export const PEER_NAMES = ['ai-sdk', 'langgraph', 'openai-agents'] as const;
export type PeerName = (typeof PEER_NAMES)[number];

/** One task for a peer. */
export interface PeerTask {
  readonly baseUrl: string;
  readonly prompt: string;
  readonly slots: number;
}

export interface PeerResult {
  /** From the call of the library to the end of its answer. */
  readonly ms: number;
  readonly toolCalls: number;
  readonly answer: string;
}

export interface Peer extends Disposable {
  /** Package and version. */
  readonly title: string;
  run(task: PeerTask): Promise<PeerResult>;
}

const TITLES: Readonly<Record<PeerName, readonly [title: string, packageName: string]>> = {
  'ai-sdk': ['AI SDK', 'ai'],
  langgraph: ['LangGraph JS', '@langchain/langgraph'],
  'openai-agents': ['Agents SDK', '@openai/agents'],
};

/** Installs the peers' packages once; they are not dependencies of the project. */
export function installPeers(): void {
  const marker = join(PEERS, 'node_modules/.package-lock.json');
  if (existsSync(marker) && statSync(marker).mtimeMs >= statSync(join(PEERS, 'package.json')).mtimeMs) return;
  console.error('installing the peers (once) …');
  const npm = spawnSync('npm', ['install', '--no-workspaces', '--loglevel=error'], {
    cwd: PEERS,
    stdio: ['ignore', 'inherit', 'inherit'],
    shell: process.platform === 'win32',
  });
  if (npm.status !== 0) throw new Error(`npm install in ${PEERS} failed`);
}

export function startPeer(name: PeerName): Peer {
  const [title, packageName] = TITLES[name];
  const child = fork(join(PEERS, 'run.ts'), [name], { cwd: PEERS, env: peerEnvironment() });
  return {
    title: `${title} ${versionOf(packageName)}`,
    run: async (task) => await ask(child, task),
    [Symbol.dispose]() {
      child.kill();
    },
  };
}

function versionOf(packageName: string): string {
  const file = join(PEERS, 'node_modules', packageName, 'package.json');
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}

/** Without the user's settings and telemetry. */
function peerEnvironment(): NodeJS.ProcessEnv {
  return {
    PATH: process.env['PATH'],
    OPENAI_API_KEY: 'none',
    OPENAI_AGENTS_DISABLE_TRACING: '1',
    LANGCHAIN_TRACING_V2: 'false',
  };
}

async function ask(child: ChildProcess, task: PeerTask): Promise<PeerResult> {
  return await new Promise((resolve, reject) => {
    const left = (code: number | null): void => reject(new Error(`the peer's process ended (${code})`));
    child.once('exit', left);
    child.once('message', (message) => {
      child.off('exit', left);
      const answer = message as PeerResult | { readonly error: string };
      if ('error' in answer) reject(new Error(answer.error));
      else resolve(answer);
    });
    child.send(task);
  });
}
