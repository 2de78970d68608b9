/** Writes a message: text, files, and tools that the reader executes. Nothing of it is stored. */
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { ContentPart, ToolDeclaration } from '../../src/client/index.ts';
import { draft } from '../parts/drafts.ts';
import { useTask } from '../parts/task.tsx';
import { AttachmentList } from './attachment-list.tsx';
import { attached, contentOf, NOTHING } from './attachments.ts';
import { StopButton } from './stop-button.tsx';
import { declaredTools } from './tool-declarations.ts';
import { ToolsField } from './tools-field.tsx';

export interface ComposerProps {
  /** Distinguishes what is written here from what is written in other places. */
  readonly draft: string;
  /** @returns when the message is accepted. @throws CortexError, which the composer shows; the text stays */
  readonly send: (content: string | readonly ContentPart[], tools: readonly ToolDeclaration[]) => Promise<void>;
  /** Ends the writing of another version of a message, which is written here; absent: a new message is written here. */
  readonly cancel?: () => void;
  /** Whether a run that is active takes the message, if it has no client tools. Otherwise the message waits for its end. */
  readonly isSteered?: boolean;
  /** Shown while something runs or waits; null otherwise. */
  readonly stop: (() => Promise<void>) | null;
}

export function Composer({ draft: name, send, stop, cancel, isSteered = false }: ComposerProps) {
  const written = draft(`message ${name}`, '');
  const filesAttached = draft(`files ${name}`, NOTHING);
  const toolsWritten = draft(`tools ${name}`, '');
  const text = written.value;
  const toolText = toolsWritten.value;
  const { files, issues } = filesAttached.value;
  const sending = useTask();
  const box = useRef<HTMLTextAreaElement>(null);
  const declared = declaredTools(toolText);
  const cannotSend = sending.isBusy || declared.issue !== undefined || (text.trim() === '' && files.length === 0);

  const whenTaken =
    stop === null ? '' : isSteered && declared.tools.length === 0 ? ' into this run' : ', for after this run';
  const add = (more: Iterable<File>): void => {
    filesAttached.value = attached(filesAttached.peek().files, more);
  };
  const isDropping = useDrop(add);
  useLayoutEffect(() => {
    if (box.current !== null) grow(box.current);
  }, [text]);
  useEffect(() => {
    if (cancel !== undefined) box.current?.focus();
  }, [name]);

  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (cannotSend) return;
    await sending.run(async () => {
      // At once: the page may be left and shown again while it is sent.
      written.value = '';
      filesAttached.value = NOTHING;
      try {
        await send(await contentOf(text, files), declared.tools);
      } catch (fault) {
        written.value ||= text;
        if (filesAttached.peek().files.length === 0) filesAttached.value = { files, issues: [] };
        throw fault;
      }
    });
    box.current?.focus();
  };

  return (
    <form class={isDropping ? 'composer dropping' : 'composer'} onSubmit={submit}>
      {cancel !== undefined && (
        <p class="row">
          <span class="grow">Editing a message: the conversation goes on from the new version.</span>
          <button
            type="button"
            class="small"
            onClick={() => {
              cancel();
              box.current?.focus();
            }}
          >
            Cancel
          </button>
        </p>
      )}
      {sending.fault}
      {issues.map((issue) => (
        <p key={issue} class="note" role="alert">
          {issue}
        </p>
      ))}
      <AttachmentList
        files={files}
        remove={(id) => (filesAttached.value = { files: files.filter((file) => file.id !== id), issues: [] })}
      />
      <textarea
        ref={box}
        class="message-box"
        aria-label="Message"
        placeholder={isDropping ? 'Drop the files here' : `Write a message${whenTaken}`}
        rows={1}
        dir="auto"
        enterkeyhint="send"
        value={text}
        readOnly={sending.isBusy}
        onInput={({ currentTarget: { value } }) => (written.value = value)}
        onKeyDown={(event) => {
          // An input method uses Enter itself; Safari says so by the code only.
          if (event.key === 'Enter' && !event.shiftKey && !event.isComposing && event.keyCode !== 229) {
            void submit(event);
          }
          if (event.key === 'Escape') cancel?.();
        }}
        onPaste={(event) => {
          const data = event.clipboardData;
          // Office programs offer text also as an image.
          if (data === null || data.files.length === 0 || data.types.includes('text/plain')) return;
          event.preventDefault();
          add(data.files);
        }}
      />
      <div class="row">
        <FileButton add={add} />
        <ToolsField text={toolText} declared={declared} change={(to) => (toolsWritten.value = to)} />
        <div class="row">
          {stop !== null && <StopButton stop={stop} stopped={() => box.current?.focus()} />}
          <button type="submit" class="primary" disabled={cannotSend}>
            Send
          </button>
        </div>
      </div>
    </form>
  );
}

/** As high as the text; the style sheet has the greatest height. */
function grow(box: HTMLTextAreaElement): void {
  box.style.height = 'auto';
  box.style.height = `${box.scrollHeight + box.offsetHeight - box.clientHeight}px`;
}

function FileButton({ add }: { readonly add: (files: Iterable<File>) => void }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <button type="button" onClick={() => input.current?.click()}>
        Attach files
      </button>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        onChange={({ currentTarget }) => {
          add(currentTarget.files ?? []);
          // The same file can be chosen again.
          currentTarget.value = '';
        }}
      />
    </>
  );
}

/** Takes files that are dropped anywhere on the page: without this, the browser would open them instead of the page. */
function useDrop(add: (files: Iterable<File>) => void): boolean {
  const [isDropping, setDropping] = useState(false);
  useEffect(() => {
    const left = new AbortController();
    const dragged = (event: DragEvent): void => {
      const { dataTransfer: data, relatedTarget, type } = event;
      if (data?.types.includes('Files') !== true) return;
      event.preventDefault();
      // Without a related target, the pointer has left the page.
      setDropping(type === 'dragover' || (type === 'dragleave' && relatedTarget !== null));
      if (type === 'drop') add(data.files);
    };
    for (const type of ['dragover', 'dragleave', 'drop'] as const) {
      document.addEventListener(type, dragged, { signal: left.signal });
    }
    return () => left.abort();
  }, []);
  return isDropping;
}
