# Records the program that it precedes with stackprof, and writes the file that $STACKPROF names: {function: times seen in it}.  SPDX-License-Identifier: MIT
require "json"
require "stackprof"

StackProf.start(mode: :cpu, interval: 1000)
at_exit do
  StackProf.stop
  seen = StackProf.results[:frames].values.group_by { |frame| frame[:name] }
  File.write(ENV.fetch("STACKPROF"), JSON.generate(seen.transform_values { |frames| frames.sum { |frame| frame[:total_samples] } }))
end
