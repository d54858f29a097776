/** Where a message is stored. It is durable there. */
export interface Receipt {
  readonly id: string;
  readonly partition: number;
  readonly offset: number;
}
