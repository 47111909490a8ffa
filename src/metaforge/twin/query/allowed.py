"""Which parts of Cypher a query may be made of. What is not listed is refused, whatever it does."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


CLAUSES = _words(
    "AmbientLinearQueryStatement CompositeQueryExpression CypherWithStatement ForItem ForItemAlias ForStatement "
    "GqlProgram GraphPattern GraphPatternBindingTable GraphPatternWhereClause GroupByClause GroupingElementList "
    "HavingClause LimitClause MatchStatementBlock OffsetClause OptionalMatchStatement OptionalOperand "
    "OrderByAndPageStatement OrderByClause OrderingSpecification NullOrdering PrimitiveResultStatement ProcedureBody "
    "QueryConjunction ReturnItem ReturnItemAlias ReturnItemList ReturnStatement ReturnStatementBody SetOperator "
    "SetQuantifier SimpleLinearQueryStatement SimpleMatchStatement SortSpecification SortSpecificationList "
    "StatementBlock TransactionActivity WhereClause NestedQuerySpecification "
    "_ProcedureSpecificationEndTransactionCommand _ProgramActivitySessionCloseCommand _QueryConjunctionElement "
    "_ReturnStatementOrderByAndPageStatement _SetQuantifierReturnItemListGroupByClause "
    "_SetQuantifierAsteriskGroupByClause _SetQuantifierAsterisk _AsteriskGroupByClause "
    "_SimpleLinearQueryStatementPrimitiveResultStatement _OrderByClauseOffsetClauseLimitClause "
    "_OffsetClauseLimitClause _Asterisk Asterisk"
)
PATTERNS = _words(
    "AbbreviatedEdgePattern ElementPatternFiller ElementPropertySpecification ElementVariableDeclaration "
    "ElementPatternWhereClause FixedQuantifier FullEdgeAnyDirection FullEdgeLeftOrRight FullEdgePointingLeft "
    "FullEdgePointingRight GeneralQuantifier IsLabelExpression IsLabeledOrColon LabelExpression LabelFactor LabelName "
    "LabelNegation LabelPrimary LabelTerm NodePattern ParenthesizedLabelExpression PathFactor PathPattern "
    "PathPatternList PathPrimary PathTerm PathVariableDeclaration PropertyKeyValuePair PropertyKeyValuePairList "
    "QuantifiedPathPrimary WildcardLabel _Colon"
)
EXPRESSIONS = _words(
    "AggregateFunction Anonymous ApproximateNumericType ArithmeticAbsoluteValueFunction ArithmeticFactor "
    "ArithmeticTerm ArithmeticValueExpression Atan2 BinarySetFunction BindingVariableReference BooleanFactor "
    "BooleanLiteral BooleanTerm BooleanTest BooleanType BooleanValueExpression CardinalityExpression CaseAbbreviation "
    "CastSpecification CeilingFunction CharLengthExpression CharacterStringFunction CharacterStringLiteral "
    "CharacterStringType CharacterStringValueExpression CommonLogarithm ComparisonPredicate ComparisonPredicatePart2 "
    "ConcatenationValueExpression CypherChainedComparison CypherPatternComprehension CypherPatternPredicate "
    "CypherPredicateComparison CypherReduce CypherSimpleCase CypherSliceExpression CypherSubscriptExpression "
    "CypherTemporalCast CypherTemporalMethod CypherWhenClause DateFunction DateLiteral DatetimeFunction "
    "DatetimeLiteral DatetimeSubtraction DatetimeSubtractionParameters DatetimeValueExpression "
    "DatetimeValueFunction DecimalExactNumericType DependentValueExpression DurationFactor DurationFunction "
    "DurationLiteral DurationTerm DurationValueExpression DurationValueFunction ElementId ElementIdFunction ElseClause "
    "EndNode ExactNumericType ExistsPredicate ExponentialFunction Factor Field FieldList FieldsSpecification "
    "FloorFunction Fold Func GeneralLogarithmFunction GeneralParameterReference GeneralSetFunction "
    "GeneralSetFunctionType GeneralValueSpecification Head Identifier InPredicate IsEmpty IsNaN Keys LabeledPredicate "
    "LabeledPredicatePart2 Labels Last LengthExpression ListComprehension ListElementList ListPredicateFunction "
    "ListValueConstructorByEnumeration ListValueExpression ListValueFunction Literal LocaldatetimeFunction "
    "ModulusExpression MultiCharacterTrimFunction MultiplicativeOperator NaturalLogarithm Nodes "
    "NonNegativeIntegerSpecification NullLiteral NullPredicate NullPredicatePart2 NumericType NumericValueExpression "
    "NumericValueFunction ParenthesizedBooleanValueExpression ParenthesizedValueExpression PathLengthExpression "
    "PathValueExpression Pi PowerFunction Predicate Properties PropertyExistsPredicate PropertyName "
    "PropertyReference Rand RangeFunc RecordConstructor RegexMatchPredicate Relationships Replace ReverseFunc Round "
    "SearchedCase SearchedWhenClause Sign SignFunc SignedBinaryExactNumericType SignedDecimalInteger "
    "SignedNumericLiteral SimpleCase SimpleWhenClause SingleCharacterTrimFunction Size Split SquareRoot StartNode "
    "StringMatchPredicate StringValueExpression Substring SubstringFunction Tail TemporalInstantType Term TimeFunction "
    "TimestampFunc ToBooleanOrNull ToFloatOrNull ToIntegerOrNull ToLower ToStringOrNull ToUpper TrigonometricFunction "
    "TrigonometricFunctionName TrimFunction TrimOperands TrimSpecification TruthValue TypeFunc UnsignedInteger "
    "UnsignedNumericLiteral ValueExpression WhenOperandList "
    "_ArithmeticFactor _Avg _Bool _Boolean _CoalesceLeftParenListValueExpressionRightParen _CollectList _Count "
    "_CountAsterisk _DateLeftParenDateFunctionParametersRightParen "
    "_DurationLeftParenDurationFunctionParametersRightParen _ExistsGraphPattern _ExistsMatchStatementBlock "
    "_ExistsNestedQuerySpecification _Float _Int _Integer "
    "_LocalDatetimeLeftParenDatetimeFunctionParametersRightParen _Max _Min _MultiplicativeFactor "
    "_NullifLeftParenValueExpressionCommaValueExpressionRightParen _OpBooleanTerm _PercentileCont _PercentileDisc "
    "_SignedTerm _StddevPop _StddevSamp _String _Sum "
    "_ZonedDatetimeLeftParenDatetimeFunctionParametersRightParen"
)
ALLOWED = CLAUSES | PATTERNS | EXPRESSIONS
"""Names of the parser's own node types."""

FUNCTIONS = _words(
    "abs acos all any asin atan atan2 avg ceil coalesce collect cos cot count date datetime degrees duration "
    "elementid endnode exists exp floor head id isempty isnan keys labels last left length localdatetime log log10 "
    "ltrim max min nodes none nullif percentilecont percentiledisc pi properties radians range reduce relationships "
    "replace reverse right round rtrim sign sin single size split sqrt startnode stdev stdevp substring sum tail tan "
    "timestamp toboolean tofloat tofloatornull tointeger tointegerornull tolower tostring tostringornull toupper trim "
    "type lower upper"
)
"""Functions that the parser knows by name alone."""

REFUSED = {
    "CreateClause": "CREATE", "InsertStatement": "INSERT", "SetStatement": "SET", "RemoveStatement": "REMOVE",
    "DeleteStatement": "DELETE", "MergeClause": "MERGE", "CallProcedureStatement": "CALL", "QueryPrefix":
    "EXPLAIN and PROFILE", "UseGraphClause": "USE", "CreateIndex": "CREATE INDEX", "DropIndex": "DROP INDEX",
    "CreateConstraint": "CREATE CONSTRAINT", "DropConstraint": "DROP CONSTRAINT", "SessionSetCommand": "SESSION",
    "SessionCloseCommand": "SESSION", "SessionResetCommand": "SESSION", "StartTransactionCommand": "transactions",
    "EndTransactionCommand": "transactions",
}  # fmt: skip
"""Node types that are refused by their name in the language."""
WRITES = frozenset(
    ("CREATE", "INSERT", "SET", "REMOVE", "DELETE", "MERGE", "FOREACH", "CREATE INDEX", "DROP INDEX",
     "CREATE CONSTRAINT", "DROP CONSTRAINT")
)  # fmt: skip
FILES = frozenset(("LOAD CSV", "LOAD FROM", "COPY", "EXPORT", "IMPORT", "INSTALL", "ATTACH"))
"""Statements of other systems that reach outside the graph. The parser knows none of them."""
