/** A scene whose host is lost at each append in turn. */
import { expect } from 'vitest';
import type { JsonObject } from '../../src/domain/json.ts';
import type { HostScene } from './host-scene.ts';
import type { CrashPoint } from './node-sql.ts';
import { settle } from './session-kit.ts';

/** Runs the text to its end on the next host with the same disk, once for every append; all its requests are approved. */
export async function atEveryAppend({
  leaves,
  text,
  scene,
  content = () => null,
  check,
}: {
  readonly leaves: CrashPoint['leaves'];
  readonly text: string;
  readonly scene: () => HostScene;
  /** The values that answer a request. */
  readonly content?: (stage: HostScene, approvalId: string) => JsonObject | null;
  readonly check: (stage: HostScene, atAppend: number) => Promise<void> | void;
}): Promise<void> {
  let crashes = 0;
  for (let isCrashed = true, atAppend = 1; isCrashed; atAppend += 1) {
    const stage = scene();
    // The session is created by a host that survives it.
    await stage.start();
    await stage.start({ atAppend, leaves });
    stage.run(text).catch(() => undefined);
    await settle();
    isCrashed = stage.crashed;
    if (stage.crashed) await stage.start();
    if (stage.kit.session.runCount === 0) await stage.run(text);
    await stage.pass();
    for (let turn = 0; turn < 10 && stage.open.length > 0; turn += 1) {
      const [id = ''] = stage.open;
      stage.kit.session.resolveApproval(id, true, null, content(stage, id)).catch(() => undefined);
      await settle();
      isCrashed ||= stage.crashed;
      if (stage.crashed) await stage.start();
      await stage.pass();
    }
    await stage.ended();
    await check(stage, atAppend);
    crashes += isCrashed ? 1 : 0;
  }
  expect(crashes).toBeGreaterThan(5);
}
