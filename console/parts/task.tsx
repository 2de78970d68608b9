/** Something that a person asks for: carried out once at a time, and its error shown. */
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { isKeyMissing } from '../app/access.ts';
import { Fault } from './fault.tsx';

export interface Task {
  readonly isBusy: boolean;
  /** To be shown; nothing without an error. */
  readonly fault: ComponentChildren;
  /** Never rejects. */
  readonly run: (work: () => Promise<unknown>) => Promise<void>;
}

export function useTask(): Task {
  const [isBusy, setBusy] = useState(false);
  const [fault, setFault] = useState<unknown>(null);
  const run = async (work: () => Promise<unknown>): Promise<void> => {
    setBusy(true);
    setFault(null);
    try {
      await work();
    } catch (error) {
      if (!isKeyMissing(error)) setFault(error);
    } finally {
      setBusy(false);
    }
  };
  return { isBusy, fault: fault !== null && <Fault fault={fault} />, run };
}
