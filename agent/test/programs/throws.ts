import { log } from 'windlass'

interface Order {
  id: string
}

export async function run(order: Order) {
  log('about to fail')
  refuse(order)
}

function refuse(order: Order): never {
  throw new TypeError(`order ${order.id} is refused`)
}
