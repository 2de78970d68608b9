/** A thought, an answer, or text outside of both, as it is written. */
import { useState } from 'preact/hooks';
import type { Block } from '../../src/client/index.ts';
import { cut } from '../parts/format.ts';
import { memo } from '../parts/memo.ts';
import { showReordering } from '../parts/safe-text.ts';
import { Markdown } from './markdown.tsx';
import { PlainText } from './plain-text.tsx';

const PREVIEW_CHARS = 120;

export const BlockView = memo(function BlockView({ block }: { readonly block: Block }) {
  const { type, text, is_open: isOpen, is_cut: isCut } = block;
  return (
    <>
      {type === 'thought' ? <Thought text={text.trim()} isOpen={isOpen} /> : <Markdown text={text} isOpen={isOpen} />}
      {isCut && <p class="quiet">Cut off here; the model wrote again.</p>}
    </>
  );
});

/** Open while it is written, then folded. */
function Thought({ text, isOpen }: { readonly text: string; readonly isOpen: boolean }) {
  const [isShown, setShown] = useState(isOpen);
  return (
    <details class="thought" open={isOpen} onToggle={({ currentTarget: { open } }) => setShown(open)}>
      <summary class="clip">
        {isOpen ? 'Thinking' : 'Thought'}
        {!isShown && <i> {showReordering(cut(text, PREVIEW_CHARS))}</i>}
      </summary>
      {isShown && <PlainText text={text.replace(/\n{3,}/g, '\n\n')} />}
    </details>
  );
}
