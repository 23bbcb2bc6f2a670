# Records itself with stackprof: MODE INTERVAL NAME [no-stacks].  SPDX-License-Identifier: MIT
require "json"
require "stackprof"

def leaf(n) = (1..n).map { |i| (i * 7).to_s }.join
def middle(n) = n.times { |i| leaf(200 + i % 50) }
def recurse(n, k) = n == 0 ? leaf(k) : recurse(n - 1, k)

mode, interval, name, stacks = ARGV
result = StackProf.run(mode: mode.to_sym, interval: interval.to_i, raw: stacks.nil?) { 120.times { middle(60); recurse(8, 900) } }
File.write("#{name}.json", JSON.generate(result))
File.binwrite("#{name}.dump", Marshal.dump(result))
