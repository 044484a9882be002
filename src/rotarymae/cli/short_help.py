"""The text of `rotarymae fit --help`: the options that most users need. `--help-all` shows every option."""

FIT_HELP = """\
usage: rotarymae fit TABLE --out FOLDER [options]

Pre-train a model on a table of irregular observations, and fine-tune it when there are labels.

  rotarymae fit stars.csv --id star --time day --channel band --values flux --labels kinds.csv --label kind --out run

TABLE has one row per observation. It is a file, a folder, a quoted pattern, or - for standard input.
`rotarymae info TABLE` looks at it and prints a command to start with.

table
  --id COLUMN            Says which series a row belongs to. (default: id)
  --time COLUMN          Holds the times: numbers or dates. (default: time)
  --channel COLUMN       Says which band, sensor or variable was observed. (default: one channel)
  --values COLUMN ...    Hold the observed values. (default: value)
  --errors COLUMN ...    Hold the standard errors of the values, in their order. (default: none)
  --positions COLUMN ... Hold further positions, such as latitude and longitude. (default: time alone)
  --wide                 The table has one column per channel. (default: one row per observation)
  --objects FILE         Has one row per series: labels, static columns, the split. (default: none)
  --na CELL ...          These cells also mean that a value is missing. (default: empty, NA, NaN, null)

task
  --labels FILE          Has the ids of series and their labels. (default: TABLE or --objects)
  --label COLUMN         Holds the labels; without labels nothing is fine-tuned. (default: none)
  --task KIND            The labels are classes or numbers: classification, regression. (default: auto)
  --static COLUMN ...    Hold one value per series, which the prediction reads. (default: none)
  --split-by COLUMN      Whole groups, or the latest series, are held out. (default: at random)
  --decide RULE          How the predicted class is chosen: accuracy, f1, balanced, cost. (default: auto)
  --predictor METHOD     What predicts: model (network), features (boosting), combined. (default: auto)

training
  --pretrained MODEL     Start from this run or model. (default: random weights)
  --size NAME            The model's size: light, tiny-shallow, tiny, small, base. (default: light)
  --minutes N            The whole run takes about this long. (default: by epochs)
  --seed N               Fixes every random choice. (default: 0)

output
  --out FOLDER           A new folder for the models, predictions, metrics and the report. (required)
  --resume               Continue the interrupted run in the folder. (default: start anew)
  --anonymous            Leave single series out of the report. (default: some are shown)
  --quiet                Print only warnings and errors. (default: progress and results)

Pictures and sounds: rotarymae fit FOLDER --images (or --audio) --out run, with one folder per class.
All options, each with its help: rotarymae fit --help-all
"""
