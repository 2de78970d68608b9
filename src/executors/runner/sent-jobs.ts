/**
 * The order in which a container was started and jobs were sent to it (R7, J3), in the storage of its object: the ledger
 * of the runner is lost when the container stops.
 *
 * Invariants:
 *  1. A start and a job are durable before the container gets them.
 *  2. At most `limits.containerSentJobs` rows are kept; the oldest are removed.
 */
import { limits } from '../../domain/limits.ts';
import type { SqlDatabase } from '../../domain/ports/storage.ts';

export class SentJobs {
  readonly #sql: SqlDatabase;
  /** The number of the last row of each job. */
  readonly #numbers = new Map<string, number>();
  #last = 0;
  #lastStart = 0;

  constructor(sql: SqlDatabase) {
    this.#sql = sql;
    // The row of a start has no job.
    sql.exec('CREATE TABLE IF NOT EXISTS sent_jobs (number INTEGER PRIMARY KEY, job TEXT)');
    for (const { number, job } of sql.exec('SELECT number, job FROM sent_jobs ORDER BY number')) {
      this.#last = Number(number);
      if (typeof job !== 'string') this.#lastStart = this.#last;
      else this.#keep(job, this.#last);
    }
  }

  /** Resolves when it is durable that the container starts now. */
  async starts(): Promise<void> {
    this.#lastStart = this.#append(null);
    await this.#sql.sync();
  }

  /** Resolves when it is durable that the job is sent now. @returns the number of its row */
  async add(job: string): Promise<number> {
    const number = this.#append(job);
    this.#keep(job, number);
    await this.#sql.sync();
    return number;
  }

  /** The container did not take the job. */
  remove(job: string, number: number): void {
    // Another request for it may be under way.
    if (this.#numbers.get(job) === number) this.#numbers.delete(job);
    this.#sql.exec('DELETE FROM sent_jobs WHERE number = ?', number);
  }

  has(job: string): boolean {
    return this.#numbers.has(job);
  }

  /** Whether the container was started again after the row of a job. */
  isBeforeStart(number: number): boolean {
    return number < this.#lastStart;
  }

  /** Whether the job was sent, and the container was started again afterwards. */
  wasSentBeforeStart(job: string): boolean {
    const number = this.#numbers.get(job);
    return number !== undefined && this.isBeforeStart(number);
  }

  /** The newest is the last one. */
  #keep(job: string, number: number): void {
    this.#numbers.delete(job);
    this.#numbers.set(job, number);
  }

  #append(job: string | null): number {
    this.#last += 1;
    this.#sql.exec('INSERT INTO sent_jobs (number, job) VALUES (?, ?)', this.#last, job);
    const oldest = this.#last - limits.containerSentJobs;
    if (oldest <= 0) return this.#last;
    this.#sql.exec('DELETE FROM sent_jobs WHERE number <= ?', oldest);
    for (const [known, number] of this.#numbers) {
      if (number > oldest) break;
      this.#numbers.delete(known);
    }
    return this.#last;
  }
}
