/**
 * The connections of one session to MCP servers.
 *
 * Owns how many there are, which are idle, and when they end. A server of 2026-07-28 gets a new connection for every call,
 * which costs no request; one of 2025-11-25 has at most `limits.mcpConnections`, each with one call at a time.
 */
import type { ActionOutcome } from '../../domain/action.ts';
import { failure } from '../../domain/failure.ts';
import { limits } from '../../domain/limits.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import type { McpEndpoint } from '../../domain/ports/mcp.ts';
import { unlessAborted } from '../../domain/sleep.ts';
import { failureOf } from '../failure.ts';
import { connectTo } from './connection.ts';
import type { KnownServer, McpConnection, McpTarget } from './connection.ts';
import { failureOfServer } from './failures.ts';
import type { McpNetwork } from './http.ts';

/** What a session knows about a server, and how it is reached. */
export interface ServerAccess {
  readonly network: McpNetwork;
  /** @returns why its secret is not available */
  readonly target: (endpoint: McpEndpoint) => McpTarget | string;
  readonly known: (endpoint: McpEndpoint) => KnownServer | null;
  readonly learn: (endpoint: McpEndpoint, known: KnownServer) => void;
  readonly forget: (endpoint: McpEndpoint) => void;
  /** The server has said that its list of tools has changed. */
  readonly changed: (endpoint: McpEndpoint) => void;
}

interface Idle {
  readonly connection: McpConnection;
  readonly stopTimer: () => void;
}

interface Lanes {
  idle: Idle[];
  /** Connections that exist or are being made. */
  open: number;
  readonly waiting: (() => void)[];
}

export class Connections {
  readonly #access: ServerAccess;
  readonly #lanes = new Map<string, Lanes>();

  constructor(access: ServerAccess) {
    this.#access = access;
  }

  get clock(): Clock {
    return this.#access.network.clock;
  }

  /**
   * Runs a call on a connection of its own. A server that has forgotten its session, or that was replaced by one of
   * another protocol, has not seen the call: it gets it once more.
   */
  async use(
    endpoint: McpEndpoint,
    signal: AbortSignal,
    call: (connection: McpConnection) => Promise<ActionOutcome>,
  ): Promise<ActionOutcome> {
    const target = this.#access.target(endpoint);
    if (typeof target === 'string') {
      const message = `The MCP server "${endpoint.server}" needs a secret that is not available: ${target}`;
      return failure('missing_secret', message, { beforeDispatch: true });
    }
    for (let attempt = 1; ; attempt += 1) {
      let connection: McpConnection;
      let isReused = false;
      try {
        const taken = await this.#take(endpoint, target, signal);
        ({ connection, isReused } = taken);
      } catch (fault) {
        if (signal.aborted) return failureOf(fault, signal, 'aborted');
        this.#access.forget(endpoint);
        return failureOfServer(endpoint.server, fault, null);
      }
      const outcome = await call(connection);
      if (connection.listChanged()) this.#access.changed(endpoint);
      const refusal = connection.http.refusal();
      const isForgotten = !outcome.ok && isReused && refusal?.status === 404 && refusal.isOfRequest;
      this.#release(endpoint, connection, !outcome.ok && outcome.error.code !== 'tool_failed');
      if (!isForgotten || attempt > 1 || signal.aborted) return outcome;
      this.#access.forget(endpoint);
    }
  }

  async #take(
    endpoint: McpEndpoint,
    target: McpTarget,
    signal: AbortSignal,
  ): Promise<{ readonly connection: McpConnection; readonly isReused: boolean }> {
    const known = this.#access.known(endpoint);
    const lanes = this.#lanesOf(endpoint);
    if (known?.kind !== 'modern') {
      const idle = lanes.idle.pop();
      if (idle !== undefined) {
        idle.stopTimer();
        return { connection: idle.connection, isReused: true };
      }
      while (lanes.open >= limits.mcpConnections) {
        await waitIn(lanes, signal);
        const free = lanes.idle.pop();
        if (free === undefined) continue;
        free.stopTimer();
        return { connection: free.connection, isReused: true };
      }
    }
    lanes.open += 1;
    try {
      const connection = await connectTo(target, this.#access.network, {
        known,
        signal,
        timeoutMs: limits.mcpConnectMs,
      });
      this.#access.learn(endpoint, connection.known);
      return { connection, isReused: known?.kind === 'modern' };
    } catch (fault) {
      this.#ended(lanes);
      throw fault;
    }
  }

  /** @param failed the connection may be unusable */
  #release(endpoint: McpEndpoint, connection: McpConnection, failed: boolean): void {
    const lanes = this.#lanesOf(endpoint);
    if (failed || connection.era === 'modern') {
      this.#ended(lanes);
      void connection.close();
      return;
    }
    const idle: Idle = {
      connection,
      stopTimer: this.clock.schedule(limits.mcpIdleMs, () => {
        lanes.idle = lanes.idle.filter((other) => other !== idle);
        this.#ended(lanes);
        void connection.close();
      }),
    };
    lanes.idle.push(idle);
    lanes.waiting.shift()?.();
  }

  #ended(lanes: Lanes): void {
    lanes.open -= 1;
    lanes.waiting.shift()?.();
  }

  #lanesOf({ url, auth, bundled }: McpEndpoint): Lanes {
    const id = JSON.stringify([url, auth, bundled]);
    let lanes = this.#lanes.get(id);
    if (lanes === undefined) {
      lanes = { idle: [], open: 0, waiting: [] };
      this.#lanes.set(id, lanes);
    }
    return lanes;
  }
}

/** Waits for a connection that ends or becomes idle. @throws the signal's reason */
async function waitIn({ waiting }: Lanes, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  waiting.push(resolve);
  try {
    await unlessAborted(promise, signal);
  } catch (fault) {
    const at = waiting.indexOf(resolve);
    // Woken in the same moment: it is the turn of the next one.
    if (at === -1) waiting.shift()?.();
    else waiting.splice(at, 1);
    throw fault;
  }
}
