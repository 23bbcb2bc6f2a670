# A Ruby program with known shares, which test/end_to_end/interpreters.py records: it measures the CPU time of its parts
# itself and prints it as JSON. Argument: seconds of CPU time. SPDX-License-Identifier: MIT
def cpu
  Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
end

def spin(count)
  total = 0
  i = 0
  while i < count
    total += i * i % 7
    i += 1
  end
  total
end

def plain_large
  spin(150_000)
end

def plain_small
  spin(50_000)
end

def negative(number)
  -number * number % 1000
end

def callback
  (1..25_000).sort_by { |number| negative(number) }
end

def numbers(count)
  count.times { |number| yield number * number }
end

def generator
  most = 0
  numbers(20_000) { |number| most = [most, number].max }
end

# A fiber has a stack of its own, which does not have the function that resumes it.
def in_fiber
  spin(60_000)
end

def fiber
  @fiber ||= Fiber.new do
    loop do
      in_fiber
      Fiber.yield
    end
  end
end

def descend(depth)
  depth == 0 ? spin(2000) : descend(depth - 1) + spin(2000)
end

def recursion
  descend(40)
end

def raises
  raise(ArgumentError, "raised")
end

def exceptions
  4000.times do
    raises
  rescue ArgumentError
    nil
  end
end

def native
  ("0123456789" * 400_000).sum
end

PARTS = %w[plain_large plain_small callback generator in_fiber recursion exceptions native].freeze

def work(seconds, spent)
  while cpu < seconds
    PARTS.each do |part|
      before = cpu
      part == "in_fiber" ? fiber.resume : send(part)
      spent[part] += cpu - before
    end
  end
end

def nap(seconds)
  sleep(seconds)
end

def sleeper(seconds)
  10.times { nap(seconds / 10) }
end

seconds = ARGV[0].to_f
spent = Hash.new(0.0)
thread = Thread.new { sleeper(seconds) }
work(seconds, spent)
thread.join
puts "{#{spent.map { |name, time| "\"#{name}\": #{time}" }.join(", ")}}"
