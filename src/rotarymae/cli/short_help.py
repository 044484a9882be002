"""The text of `rotarymae fit --help`: the options that most users need. `--help-all` shows every option."""

FIT_HELP = """\
usage: rotarymae fit TABLE --out FOLDER [options]

Pre-train a model on a table of irregular observations, and fine-tune it when there are labels.

  rotarymae fit stars.csv --id star --time day --channel band --values flux --labels kinds.csv --label kind --out run

TABLE has one row per observation. It is a file, a folder, a quoted pattern, or - for standard input.
`rotarymae info TABLE` looks at it and prints a command to start with.

reading
  --id COLUMN            Says which series a row belongs to, if not called id. (default: id)
  --time COLUMN          Holds the times, numbers or dates, if not called time. (default: time)
  --channel COLUMN       Says which band, sensor or variable was observed, if there are several. (default: one channel)
  --values COLUMN ...    Hold the observed values, if not called value. (default: value)
  --errors COLUMN ...    Hold the standard errors of --values, in that order; name them if known. (default: none)
  --positions COLUMN ... Hold further positions, such as latitude and longitude, if place matters. (default: time alone)
  --wide                 The table has one column per channel and a row per time. (default: one row per observation)
  --objects FILE         Table with one row per series: labels, static columns, the split. (default: none)
  --labels FILE          Table with the ids of series and their labels. (default: TABLE or --objects)
  --label COLUMN         Holds the labels; without it and --labels nothing is fine-tuned. (default: none)
  --na CELL ...          Cells that also mean a missing value. (default: empty, NA, NaN, null)

pre-training and fine-tuning
  --pretrained MODEL     Start from this run or model, to fine-tune it. (default: random weights)
  --size NAME            Encoder's size: light, tiny-shallow, tiny, small, base; larger is slower. (default: light)
  --minutes N            The whole run takes about this long, if time is limited. (default: by epochs)
  --split-by COLUMN      Its groups are kept out whole for scoring, or its latest dates. (default: at random)
  --seed N               Fixes every random choice; vary it to see how results vary. (default: 0)

fine-tuning and prediction
  --task KIND            Labels are classes or numbers: classification, regression, survival. (default: auto)
  --static COLUMN ...    Hold one value per series, such as age, that predictions use. (default: none)
  --decide RULE          How a class is chosen: accuracy, f1, balanced, cost; f1 for rare ones. (default: auto)
  --predictor METHOD     What predicts: the network (model), boosting (features), both (combined). (default: auto)

output and report
  --out FOLDER           New folder for the models, predictions, metrics and the report. (required)
  --resume               Continue the interrupted run in --out. (default: start anew)
  --anonymous            Leave ids and curves of single series out of the report, to share it. (default: shown)
  --quiet                Print only warnings and errors. (default: progress and results)

Pictures and sounds: rotarymae fit FOLDER --images (or --audio) --out run, with one folder per class.
All options, each with its help: rotarymae fit --help-all
"""
