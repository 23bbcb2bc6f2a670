# Sleeps in a stack of every kind: test/unit/keep_interpreted.c keeps the memory of it.
def réveil
  sleep(60)
end

class Clock
  def tick
    1.times { réveil }
  end
end

def key(number)
  Clock.new.tick if number == 0
  number
end

def descend(depth)
  depth == 0 ? [1, 0].sort_by { |number| key(number) } : descend(depth - 1)
end

Thread.new { sleep(60) }
eval("descend(3)")
