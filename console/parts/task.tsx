/** Something that a person asks for: carried out once at a time, and its error shown. */
import type { ComponentChildren } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { isKeyMissing } from '../app/access.ts';
import { Fault } from './fault.tsx';

export interface Task {
  readonly isBusy: boolean;
  /** To be shown; nothing without an error. */
  readonly fault: ComponentChildren;
  /** Does nothing while it is busy. Never rejects. */
  readonly run: (work: () => Promise<unknown>) => Promise<void>;
}

export function useTask(): Task {
  const [isBusy, setBusy] = useState(false);
  const [fault, setFault] = useState<unknown>(null);
  // The state would be too late for two events before the next render.
  const isRunning = useRef(false);
  const run = async (work: () => Promise<unknown>): Promise<void> => {
    if (isRunning.current) return;
    isRunning.current = true;
    setBusy(true);
    setFault(null);
    try {
      await work();
    } catch (error) {
      if (!isKeyMissing(error)) setFault(error);
    } finally {
      isRunning.current = false;
      setBusy(false);
    }
  };
  return { isBusy, fault: fault !== null && <Fault fault={fault} />, run };
}
